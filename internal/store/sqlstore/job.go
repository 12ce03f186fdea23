package sqlstore

import (
	"fmt"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

const jobColumns = `id, kind, payload, run_at, attempts, last_err`

// "attempts >= 0" is every job; the indexes of kinds and of times are for statements that say so.
// An empty string after the kind keeps the index of kinds away from those that come in the order of times, and would have to sort.
const (
	jobsOfKind = `
SELECT ` + jobColumns + `
FROM jobs
WHERE kind = $1 AND id > $2 AND attempts >= 0
ORDER BY id
LIMIT $3`

	jobsDue = `
SELECT ` + jobColumns + `
FROM jobs
WHERE run_at <= $1 AND attempts >= 0 AND kind || '' IN ($3, $4, $5, $6, $7, $8, $9, $10)
ORDER BY run_at, id
LIMIT $2`

	anyJobDue = `
SELECT id
FROM jobs
WHERE run_at <= $1 AND attempts >= 0 AND kind || '' IN ($3, $4, $5, $6, $7, $8, $9, $10)
ORDER BY run_at, id
LIMIT $2`

	jobByID = `SELECT ` + jobColumns + ` FROM jobs WHERE id = $1`

	insertJob = `
INSERT INTO jobs (` + jobColumns + `)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING`

	leaseJob = `UPDATE jobs SET run_at = $2 WHERE id = $1`

	holdJob = `UPDATE jobs SET run_at = $3 WHERE id = $1 AND run_at + 0 = $2`

	retryJob = `UPDATE jobs SET attempts = attempts + 1, last_err = $2, run_at = $3 WHERE id = $1`

	deleteJob = `DELETE FROM jobs WHERE id = $1`
)

// Jobs implements store.JobReader.
func (s reader) Jobs(kind string, after lance.ObjectID, limit int) ([]store.Job, error) {
	jobs, err := s.jobs(jobsOfKind, kind, int64(after), int64(limit))
	if err != nil {
		return nil, fmt.Errorf("list jobs of kind %q: %w", kind, err)
	}
	return jobs, nil
}

func (s reader) jobs(sql string, args ...any) ([]store.Job, error) {
	var jobs []store.Job
	err := s.query(sql, [][]any{args}, func(_ int, r row) error {
		jobs = append(jobs, store.Job{
			ID:       lance.ObjectID(r.Int(0)),
			Kind:     r.Text(1),
			Payload:  r.Text(2),
			RunAt:    decodeTime(r.Int(3)),
			Attempts: int(r.Int(4)),
			LastErr:  r.Text(5),
		})
		return nil
	})
	return jobs, err
}

// Job implements store.JobReader.
func (s reader) Job(id lance.ObjectID) (store.Job, error) {
	jobs, err := s.jobs(jobByID, int64(id))
	if err != nil {
		return store.Job{}, fmt.Errorf("look up job %d: %w", id, err)
	}
	if len(jobs) == 0 {
		return store.Job{}, notFound("job", id)
	}
	return jobs[0], nil
}

// dueArgs are the arguments of a statement about jobs that are due: the kinds are repeated in the places that are left.
func dueArgs(at time.Time, limit int, kinds []string) ([]any, error) {
	if len(kinds) == 0 || len(kinds) > store.JobKinds {
		return nil, fmt.Errorf("%d kinds of jobs at once: it must be 1 to %d", len(kinds), store.JobKinds)
	}
	args := []any{encodeTime(at), int64(limit)}
	for i := range store.JobKinds {
		args = append(args, kinds[i%len(kinds)])
	}
	return args, nil
}

// JobsDue implements store.JobReader.
func (s reader) JobsDue(kinds []string, now time.Time) (bool, error) {
	args, err := dueArgs(now, 1, kinds)
	if err != nil {
		return false, err
	}
	due, err := exists(s, anyJobDue, args...)
	if err != nil {
		return false, fmt.Errorf("look for jobs that are due: %w", err)
	}
	return due, nil
}

// InsertJob implements store.JobWriter.
func (t *tx) InsertJob(job store.Job) error {
	n, err := change(t, insertJob,
		int64(job.ID), job.Kind, job.Payload, encodeTime(job.RunAt), int64(job.Attempts), job.LastErr)
	if err != nil {
		return fmt.Errorf("insert job of kind %q: %w", job.Kind, err)
	}
	if n == 0 {
		return t.runAgain("job", job.ID)
	}
	return nil
}

// LeaseJobs implements store.JobWriter. The jobs come back with RunAt as it was.
func (t *tx) LeaseJobs(kinds []string, limit int, lease time.Duration) ([]store.Job, error) {
	question, err := dueArgs(t.now, limit, kinds)
	if err != nil {
		return nil, err
	}
	jobs, err := t.jobs(jobsDue, question...)
	if err != nil {
		return nil, fmt.Errorf("look up jobs that are due: %w", err)
	}
	until := encodeTime(t.now.Add(lease))
	args := make([][]any, len(jobs))
	for i, job := range jobs {
		args[i] = []any{int64(job.ID), until}
	}
	if _, err := t.exec(leaseJob, args); err != nil {
		return nil, fmt.Errorf("lease %d jobs: %w", len(jobs), err)
	}
	return jobs, nil
}

// HoldJob implements store.JobWriter.
func (t *tx) HoldJob(id lance.ObjectID, held, until time.Time) (bool, error) {
	n, err := change(t, holdJob, int64(id), encodeTime(held), encodeTime(until))
	if err != nil {
		return false, fmt.Errorf("hold job %d: %w", id, err)
	}
	return n == 1, nil
}

// RetryJob implements store.JobWriter.
func (t *tx) RetryJob(id lance.ObjectID, lastErr string, runAt time.Time) error {
	if _, err := change(t, retryJob, int64(id), lastErr, encodeTime(runAt)); err != nil {
		return fmt.Errorf("retry job %d: %w", id, err)
	}
	return nil
}

// DeleteJob implements store.JobWriter.
func (t *tx) DeleteJob(id lance.ObjectID) error {
	if _, err := change(t, deleteJob, int64(id)); err != nil {
		return fmt.Errorf("delete job %d: %w", id, err)
	}
	return nil
}
