package store

import (
	"time"

	"github.com/lancerest/lancerest/internal/lance"
)

// Job is work that must follow a commit and survives a crash (C12): it is inserted in the commit's own transaction and run
// by package jobs until it succeeds.
type Job struct {
	ID       lance.ObjectID
	Kind     string
	Payload  string // JSON, known only to the kind's runner
	RunAt    time.Time
	Attempts int
	LastErr  string
}

// JobKinds is how many kinds of jobs one question may name.
const JobKinds = 8

// JobReader looks at jobs.
type JobReader interface {
	// Jobs returns up to limit jobs of a kind in order of their ids, after the given one.
	Jobs(kind string, after lance.ObjectID, limit int) ([]Job, error)
	// Job returns a job. ErrNotFound if there is none.
	Job(id lance.ObjectID) (Job, error)
	// JobsDue reports whether the RunAt of any job of the kinds, 1 to JobKinds of them, is not after now.
	JobsDue(kinds []string, now time.Time) (bool, error)
}

// JobWriter changes jobs.
type JobWriter interface {
	// InsertJob adds a job with an ID from NewID, to run at RunAt or as soon as possible after it.
	InsertJob(job Job) error
	// LeaseJobs returns up to limit jobs of the kinds, 1 to JobKinds of them, that are due at Now, oldest first, and moves each RunAt to
	// Now plus lease, so that nobody else takes it meanwhile. They come back as they were.
	LeaseJobs(kinds []string, limit int, lease time.Duration) ([]Job, error)
	// HoldJob moves RunAt from held, which a lease or another HoldJob set it to, to until. It reports false, and does nothing, where the job
	// is gone or its RunAt is another: somebody else has it by now.
	HoldJob(id lance.ObjectID, held, until time.Time) (bool, error)
	// RetryJob counts an attempt, keeps the error's text and sets the next RunAt. A job that is gone is left alone.
	RetryJob(id lance.ObjectID, lastErr string, runAt time.Time) error
	// DeleteJob removes a job. A job that is gone is left alone.
	DeleteJob(id lance.ObjectID) error
}
