package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// The properties of the record of a task: a transaction that DescribeTransaction shows like any other. Those of no other transaction begin
// with propTask, so that they tell tasks apart.
const (
	propTask         = "job."
	propTaskStarted  = propTask + "started_at" // RFC 3339, of the first attempt
	propTaskEnded    = propTask + "ended_at"
	propTaskAttempts = propTask + "attempts"
	propTaskCode     = propTask + "error_code"
	propTaskCommit   = propTask + "commit" // the transaction of the last version that it made
	propTaskRow      = propTask + "row"    // of the job; not shown
)

// Properties that others read too.
const (
	TaskOperation = propTask + "operation"
	TaskTable     = propTask + "table" // its id, as a JSON list, when the task was queued
	TaskError     = propTask + "error"
	// TaskResult begins the names of those that tell what a task came to.
	TaskResult = propTask + "result."
)

// Task is work on one table that outlives its request and the server: a job, and a transaction that tells how far it is.
type Task struct {
	ID        lance.TransactionID `json:"transaction"`
	Operation string              `json:"operation"`
	Table     lance.ObjectID      `json:"table"`
	// Principal is for whom it works, and Context what the request carried.
	Principal string            `json:"principal"`
	Context   map[string]string `json:"-"`
	// Request is what is to be done, known only to who performs it. It must hold no secret.
	Request json.RawMessage `json:"request"`
}

// ErrTaskEnded says that a task was ended meanwhile, by its cancellation or by another server: nothing more is to be done for it.
var ErrTaskEnded = errors.New("the task has ended")

// QueuedTask is a task to queue.
type QueuedTask struct {
	Task
	Kind string // of the job
	ID   []string
	// Answer makes the response of the request that queues it, which is kept where the request has a key.
	Answer func(lance.TransactionID) any
	// Alone says that nothing is to be queued where a task of the kind for the same table has not ended: its id is returned instead.
	Alone bool
}

// QueueTask queues a task for a table, for the caller that ctx carries, and returns its id. Errors: 1, 4, 13.
func (c *Catalog) QueueTask(ctx context.Context, q QueuedTask) (lance.TransactionID, error) {
	if err := checkTableID(q.ID); err != nil {
		return "", err
	}
	shown, err := json.Marshal(q.ID)
	if err != nil {
		return "", err
	}
	task := q.Task
	if task.Principal == "" {
		task.Principal = auth.PrincipalFrom(ctx).Name
	}
	var id lance.TransactionID
	err = c.state.Update(ctx, func(tx store.Tx) error {
		t, err := state.TableAt(tx, q.ID)
		if err != nil {
			return err
		}
		if q.Alone {
			id, err = openTask(tx, q.Kind, t.ID)
			if err != nil || id != "" {
				return err
			}
		}
		id, task.ID, task.Table = c.state.Store.NewTransactionID(), "", t.ID
		task.ID = id
		payload, err := json.Marshal(task)
		if err != nil {
			return err
		}
		row := tx.NewID()
		record := lance.Transaction{
			ID: id, State: lance.TransactionCommitted, Principal: task.Principal, CreatedAt: tx.Now(), ResolvedAt: tx.Now(), Context: task.Context,
			Entries: []lance.Entry{}, Status: string(api.TransactionQueued), Properties: map[string]string{
				TaskOperation: task.Operation, TaskTable: string(shown), propTaskRow: strconv.FormatInt(int64(row), 10),
			},
		}
		if err := tx.InsertTransaction(record); err != nil {
			return err
		}
		if err := tx.InsertJob(store.Job{ID: row, Kind: q.Kind, Payload: string(payload), RunAt: tx.Now()}); err != nil {
			return err
		}
		if q.Answer == nil {
			return nil
		}
		return keep(ctx, tx, q.Answer(id))
	})
	return id, err
}

// WatchTable queues a job of a kind for a live table, for the caller that ctx carries, which has no record: it is run from the given time on for
// as long as whoever performs it wishes. Errors: 1, 4.
func (c *Catalog) WatchTable(ctx context.Context, kind string, id []string, at time.Time) error {
	return c.state.Update(ctx, func(tx store.Tx) error {
		t, err := state.TableAt(tx, id)
		if err != nil {
			return err
		}
		payload, err := json.Marshal(Task{Table: t.ID, Principal: auth.PrincipalFrom(ctx).Name})
		if err != nil {
			return err
		}
		return tx.InsertJob(store.Job{ID: tx.NewID(), Kind: kind, Payload: string(payload), RunAt: at})
	})
}

// tasksMost is how many tasks of a kind are looked through.
const tasksMost = 10_000

// openTask returns a task of a kind for a table that has not ended, "" if there is none.
func openTask(r store.Reader, kind string, table lance.ObjectID) (lance.TransactionID, error) {
	jobs, err := r.Jobs(kind, 0, tasksMost)
	if err != nil {
		return "", err
	}
	for _, job := range jobs {
		var task Task
		if json.Unmarshal([]byte(job.Payload), &task) == nil && task.Table == table {
			return task.ID, nil
		}
	}
	return "", nil
}

// OpenTasks returns the records of the tasks of some kinds that have not ended.
func (c *Catalog) OpenTasks(ctx context.Context, kinds []string) ([]lance.Transaction, error) {
	var all []lance.Transaction
	err := c.state.View(ctx, func(r store.Reader) error {
		all = nil
		for _, kind := range kinds {
			open, err := openTasks(r, kind)
			if err != nil {
				return err
			}
			all = append(all, open...)
		}
		return nil
	})
	return all, err
}

func openTasks(r store.Reader, kind string) ([]lance.Transaction, error) {
	jobs, err := r.Jobs(kind, 0, tasksMost)
	if err != nil {
		return nil, err
	}
	var open []lance.Transaction
	for _, job := range jobs {
		var task Task
		if json.Unmarshal([]byte(job.Payload), &task) != nil || task.ID == "" {
			continue
		}
		t, err := r.Transaction(task.ID)
		if err != nil {
			return nil, err
		}
		open = append(open, t)
	}
	return open, nil
}

// BegunTask is a task that is to be performed now.
type BegunTask struct {
	// Path is where its table is by now: a renamed one is followed.
	Path lance.TableID
	// Commit is the transaction of the last version that an earlier attempt made, if any.
	Commit lance.TransactionID
}

// BeginTask counts an attempt at a task and says where its table is. Errors: ErrTaskEnded, 4 where the table was dropped.
func (c *Catalog) BeginTask(ctx context.Context, task Task) (BegunTask, error) {
	var b BegunTask
	err := c.state.Update(ctx, func(tx store.Tx) error {
		t, err := tx.Transaction(task.ID)
		if errors.Is(err, store.ErrNotFound) || err == nil && !taskOpen(t) {
			return ErrTaskEnded
		}
		if err != nil {
			return err
		}
		b.Commit = lance.TransactionID(t.Properties[propTaskCommit])
		if b.Path, err = taskPath(tx, task); err != nil {
			return err
		}
		properties := maps.Clone(t.Properties)
		if properties[propTaskStarted] == "" {
			properties[propTaskStarted] = tx.Now().UTC().Format(time.RFC3339Nano)
		}
		attempts, _ := strconv.Atoi(properties[propTaskAttempts])
		properties[propTaskAttempts] = strconv.Itoa(attempts + 1)
		return tx.AlterTransaction(t.ID, string(api.TransactionRunning), properties)
	})
	return b, err
}

// TaskPath returns where the table of a task is. Errors: 4 where it was dropped.
func (c *Catalog) TaskPath(ctx context.Context, task Task) (lance.TableID, error) {
	var path lance.TableID
	err := c.state.View(ctx, func(r store.Reader) (err error) {
		path, err = taskPath(r, task)
		return err
	})
	return path, err
}

func taskPath(r store.Reader, task Task) (lance.TableID, error) {
	table, err := r.TableByID(task.Table)
	if err == nil && table.State == lance.TableLive {
		return table.Path, nil
	}
	if err == nil || errors.Is(err, store.ErrNotFound) {
		return nil, api.Errorf(api.CodeTableNotFound, "the table was dropped after the job was made")
	}
	return nil, err
}

// EndTask records what a task came to and removes its job: results by their names, or why it failed. The error is ErrTaskEnded where it
// has been ended meanwhile.
func (c *Catalog) EndTask(ctx context.Context, id lance.TransactionID, results map[string]string, failed *api.Error) error {
	return c.state.Update(ctx, func(tx store.Tx) error {
		t, err := tx.Transaction(id)
		if err != nil {
			return err
		}
		if !taskOpen(t) {
			return ErrTaskEnded
		}
		t.Properties = maps.Clone(t.Properties)
		t.Status = string(api.TransactionSucceeded)
		for name, value := range results {
			t.Properties[TaskResult+name] = value
		}
		if failed != nil {
			t.Status = string(api.TransactionFailed)
			t.Properties[TaskError], t.Properties[propTaskCode] = failed.Message, strconv.Itoa(int(failed.Code))
		}
		return endTask(tx, &t)
	})
}

// endTask writes the record of a task that ends now, and removes its job.
func endTask(tx store.Tx, t *lance.Transaction) error {
	t.Properties[propTaskEnded] = tx.Now().UTC().Format(time.RFC3339Nano)
	if err := tx.AlterTransaction(t.ID, t.Status, t.Properties); err != nil {
		return err
	}
	row, err := strconv.ParseInt(t.Properties[propTaskRow], 10, 64)
	if err != nil {
		return err
	}
	return tx.DeleteJob(lance.ObjectID(row))
}

// isTask reports whether a transaction is the record of a task.
func isTask(t lance.Transaction) bool { return t.Properties[TaskOperation] != "" }

// taskOpen reports whether a task has not ended.
func taskOpen(t lance.Transaction) bool {
	return isTask(t) && (t.Status == string(api.TransactionQueued) || t.Status == string(api.TransactionRunning))
}

// alterTask refuses any status of a task but that it is canceled while it has not ended: all others are its own.
func alterTask(t lance.Transaction, status string) *api.Error {
	if status != string(api.TransactionCanceled) {
		return api.Errorf(api.CodeInvalidInput, "transaction %q is a job, whose status follows its work: the only one that can be set is Canceled", t.ID)
	}
	if !taskOpen(t) {
		return api.Errorf(api.CodeInvalidInput, "transaction %q is a job that has ended as %s: only one that is Queued or Running can be canceled", t.ID, t.Status)
	}
	return nil
}

// TaskEnded returns the results of a task that has ended, or why it did not succeed, and whether it has ended. Errors: 10.
func (c *Catalog) TaskEnded(ctx context.Context, id lance.TransactionID) (results map[string]string, failed *api.Error, ended bool, err error) {
	var t lance.Transaction
	err = c.state.View(ctx, func(r store.Reader) (err error) {
		t, err = r.Transaction(id)
		return err
	})
	if err != nil || taskOpen(t) {
		return nil, nil, false, err
	}
	if t.Status == string(api.TransactionCanceled) {
		return nil, api.Errorf(api.CodeInvalidInput, "the job was canceled"), true, nil
	}
	if code, err := strconv.Atoi(t.Properties[propTaskCode]); err == nil {
		return nil, api.Errorf(api.Code(code), "%s", t.Properties[TaskError]), true, nil
	}
	results = map[string]string{}
	for key, value := range t.Properties {
		if name, ok := strings.CutPrefix(key, TaskResult); ok {
			results[name] = value
		}
	}
	return results, nil, true, nil
}

// Committed reports whether a transaction was committed, finishing it first if it was left half done (C7).
func (c *Catalog) Committed(ctx context.Context, id lance.TransactionID) (bool, error) {
	t, err := c.transaction(ctx, []string{string(id)})
	if api.CodeOf(err) == api.CodeTransactionNotFound && err != nil {
		return false, nil
	}
	return err == nil && t.State == lance.TransactionCommitted, err
}

type taskContext struct{}

// WithTask returns a context for a request that is part of a task: what it commits is refused once the task has ended.
func WithTask(ctx context.Context, id lance.TransactionID) context.Context {
	return context.WithValue(ctx, taskContext{}, id)
}

// noteTask refuses, in the transaction that reserves a commit, what comes from a task that has ended, and notes the commit with its task: an
// attempt after a crash can tell by that whether the one before got through.
func noteTask(ctx context.Context, tx store.Tx, commit lance.TransactionID) error {
	id, ok := ctx.Value(taskContext{}).(lance.TransactionID)
	if !ok {
		return nil
	}
	t, err := tx.Transaction(id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !taskOpen(t) {
		return api.Errorf(api.CodeInvalidInput, "the job %q that this commit is part of has ended: nothing was committed", id)
	}
	if err != nil {
		return err
	}
	t.Properties = maps.Clone(t.Properties)
	t.Properties[propTaskCommit] = string(commit)
	return tx.AlterTransaction(id, t.Status, t.Properties)
}
