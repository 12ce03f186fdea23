package durable_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
	"github.com/lancerest/lancerest/internal/engine"
	"github.com/lancerest/lancerest/internal/engine/durable"
	"github.com/lancerest/lancerest/internal/engine/enginetest"
	"github.com/lancerest/lancerest/internal/jobs"
	"github.com/lancerest/lancerest/internal/store"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, func(t *testing.T) engine.Engine {
		e := newLake(t).engine()
		run(t, e)
		return e
	})
}

// left counts the jobs that are there.
func (l *lake) left(t *testing.T) (n int) {
	t.Helper()
	err := l.state.View(t.Context(), func(r store.Reader) error {
		n = 0
		for _, kind := range durable.Kinds() {
			some, err := r.Jobs(kind, 0, 100)
			if err != nil {
				return err
			}
			n += len(some)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestBackfill: a job tells what it was asked for, by whom, when it began and ended and what it came to; its commits are its caller's.
func TestBackfill(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	e := l.engine()
	run(t, e)
	ctx := auth.WithPrincipal(t.Context(), auth.Principal{Name: "ann é+%"})
	got, err := e.Do(ctx, "AlterTableBackfillColumns", &api.AlterTableBackfillColumnsRequest{
		Target: api.Target{ID: []string{"t"}, Caller: api.Caller{Context: map[string]string{"why": "a test"}}}, Column: "twice",
	})
	if err != nil {
		t.Fatal(err)
	}
	p := l.until(t, got.(*api.AlterTableBackfillColumnsResponse).JobID, api.TransactionSucceeded)
	for _, name := range []string{"created_at", "job.started_at", "job.ended_at"} {
		if _, err := time.Parse(time.RFC3339Nano, p[name]); err != nil {
			t.Errorf("property %q: %v", name, err)
		}
	}
	if p["resolved_at"] != p["job.ended_at"] {
		t.Errorf("resolved at %q, ended at %q", p["resolved_at"], p["job.ended_at"])
	}
	commit := l.describe(t, p["job.commit"]).Properties
	if commit["principal"] != "ann é+%" {
		t.Errorf("the commit is by %q", commit["principal"])
	}
	for _, name := range []string{"created_at", "resolved_at", "job.started_at", "job.ended_at", "job.commit", "job.result.version"} {
		delete(p, name)
	}
	want := map[string]string{
		"job.operation": "AlterTableBackfillColumns", "job.table": `["t"]`, "job.attempts": "1", "job.result.rows": "3", "principal": "ann é+%",
		"context.why": "a test", "tables": "[]",
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	if n := l.filled(t, "t"); n != 3 || l.left(t) != 0 {
		t.Errorf("%d rows are filled, %d jobs are left", n, l.left(t))
	}
}

// TestRefused: what is wrong with a request is said at once, and makes no job.
func TestRefused(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	e := l.engine()
	for code, request := range map[api.Code]*api.AlterTableBackfillColumnsRequest{
		api.CodeTableColumnNotFound: {Target: api.At("t"), Column: "none"},
		api.CodeInvalidInput:        {Target: api.At("t"), Column: "id"},
		api.CodeTableNotFound:       {Target: api.At("none"), Column: "id"},
	} {
		_, err := e.Do(t.Context(), "AlterTableBackfillColumns", request)
		if err == nil || api.CodeOf(err) != code {
			t.Errorf("column %q of %q: %v, want code %d", request.Column, request.ID, err, code)
		}
	}
	_, err := e.Do(t.Context(), "RefreshMaterializedView", &api.RefreshMaterializedViewRequest{Target: api.At("none")})
	if err == nil || api.CodeOf(err) != api.CodeTableNotFound {
		t.Errorf("refresh: %v, want code 4", err)
	}
	if n := l.left(t); n != 0 {
		t.Errorf("%d jobs were made", n)
	}
}

// TestIndex: who asks for an index is told that it is there, or why not, or after a while that it is being built.
func TestIndex(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	patient, hasty := l.engine(), l.engine(func(o *durable.Options) { o.IndexAnswer = time.Nanosecond })
	ask := func(e engine.Engine, column string) (*string, error) {
		got, err := e.Do(t.Context(), "CreateTableScalarIndex", &api.CreateTableIndexRequest{Target: api.At("t"), Column: column, IndexType: "BTREE"})
		if err != nil {
			return nil, err
		}
		return got.(*api.CreateTableScalarIndexResponse).TransactionID, nil
	}
	stop := run(t, patient)
	if id, err := ask(patient, "id"); id != nil || err != nil {
		t.Errorf("answered %v, %v", id, err)
	}
	if _, err := ask(patient, "none"); err == nil || api.CodeOf(err) != api.CodeTableColumnNotFound {
		t.Errorf("no such column: %v, want code 12", err)
	}
	stop()
	id, err := ask(hasty, "text")
	if err != nil || id == nil {
		t.Fatalf("answered %v, %v, want an id", id, err)
	}
	wrong, err := ask(hasty, "none")
	if err != nil || wrong == nil {
		t.Fatalf("answered %v, %v, want an id", wrong, err)
	}
	if got := l.describe(t, *id).Status; got != api.TransactionQueued {
		t.Errorf("status %s", got)
	}
	run(t, hasty)
	l.until(t, *id, api.TransactionSucceeded)
	p := l.until(t, *wrong, api.TransactionFailed)
	if p["job.error_code"] != "12" || !strings.Contains(p["job.error"], "no column 'none'") {
		t.Errorf("failed with %q, %q", p["job.error_code"], p["job.error"])
	}
	got, err := l.catalog.ListTableIndices(t.Context(), &api.ListTableIndicesRequest{Target: api.At("t")})
	if err != nil || len(got.Indexes) != 2 {
		t.Errorf("indices: %+v, %v", got, err)
	}
}

// TestCancelQueued: a job that is canceled before it began is never begun, and other statuses of jobs cannot be set.
func TestCancelQueued(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	before := l.version(t, "t")
	e := l.engine()
	job := backfill(t, e)
	for _, status := range []api.TransactionStatus{api.TransactionSucceeded, api.TransactionFailed, api.TransactionRunning, api.TransactionQueued} {
		if err := l.set(job, status); err == nil || api.CodeOf(err) != api.CodeInvalidInput || !strings.Contains(err.Error(), "is a job") {
			t.Errorf("set to %s: %v", status, err)
		}
	}
	if err := l.cancel(job); err != nil {
		t.Fatal(err)
	}
	if err := l.cancel(job); err == nil || !strings.Contains(err.Error(), "has ended as Canceled") {
		t.Errorf("canceled twice: %v", err)
	}
	run(t, e)
	other := backfill(t, e)
	l.until(t, other, api.TransactionSucceeded)
	p := l.until(t, job, api.TransactionCanceled)
	if p["job.attempts"] != "" || p["job.ended_at"] == "" || l.version(t, "t") == before || l.left(t) != 0 {
		t.Errorf("properties %v, version %d, %d jobs are left", p, l.version(t, "t"), l.left(t))
	}
}

// TestProperties: people keep properties of their own with a job, and cannot change what it says of itself.
func TestProperties(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	job := backfill(t, l.engine())
	set := func(key string) error {
		value := "x"
		_, err := l.catalog.AlterTransaction(t.Context(), &api.AlterTransactionRequest{
			Target: api.At(job), Actions: []api.AlterTransactionAction{{SetPropertyAction: &api.AlterTransactionSetProperty{Key: &key, Value: &value}}},
		})
		return err
	}
	if err := set("mine"); err != nil {
		t.Error(err)
	}
	if err := set("job.operation"); err == nil || api.CodeOf(err) != api.CodeInvalidInput {
		t.Errorf("its own: %v", err)
	}
	got := l.describe(t, job)
	if got.Status != api.TransactionQueued || got.Properties["mine"] != "x" || l.left(t) != 1 {
		t.Errorf("%+v, %d jobs", got, l.left(t))
	}
}

// TestCancelRunning: a job that is canceled while it runs ends, and nothing that it still tries to commit gets through.
func TestCancelRunning(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	before := l.version(t, "t")
	began, ended := make(chan struct{}), make(chan error, 1)
	e := l.engine(meddle(func(w engine.Worker, ctx context.Context, operation string, request any) (map[string]any, error) {
		close(began)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), jobs.ErrLost) {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		_, err := w.Perform(context.WithoutCancel(ctx), operation, request, nil) // a worker that is too busy to notice
		ended <- err
		return nil, err
	}))
	stop := run(t, e)
	job := backfill(t, e)
	within(t, "the begin", began)
	l.until(t, job, api.TransactionRunning)
	if err := l.cancel(job); err != nil {
		t.Fatal(err)
	}
	if err := within(t, "the end", ended); err == nil {
		t.Error("a canceled job has committed")
	}
	stop()
	if got := l.describe(t, job); got.Status != api.TransactionCanceled || l.version(t, "t") != before || l.left(t) != 0 {
		t.Errorf("%+v, version %d, want %d", got, l.version(t, "t"), before)
	}
}

// TestRestart: a server that stops gives back the job that it has, and the next one goes on with it at once.
func TestRestart(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	began := make(chan struct{})
	first := l.engine(meddle(func(_ engine.Worker, ctx context.Context, _ string, _ any) (map[string]any, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	stop := run(t, first)
	job := backfill(t, first)
	within(t, "the begin", began)
	stop()
	run(t, l.engine())
	if p := l.until(t, job, api.TransactionSucceeded); p["job.attempts"] != "2" {
		t.Errorf("%s attempts", p["job.attempts"])
	}
	if n := l.filled(t, "t"); n != 3 {
		t.Errorf("%d rows are filled", n)
	}
}

// TestLostWord: an index that was built by a server that could not say so any more is not built again.
func TestLostWord(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	built := make(chan struct{})
	first := l.engine(func(o *durable.Options) { o.IndexAnswer = time.Nanosecond }, meddle(func(w engine.Worker, ctx context.Context, operation string, request any) (map[string]any, error) {
		if _, err := w.Perform(ctx, operation, request, nil); err != nil {
			t.Error(err)
		}
		close(built)
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	stop := run(t, first)
	name := "mine"
	got, err := first.Do(t.Context(), "CreateTableIndex", &api.CreateTableIndexRequest{Target: api.At("t"), Column: "id", IndexType: "BTREE", Name: &name})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "the index", built)
	version := l.version(t, "t")
	stop()
	run(t, l.engine())
	l.until(t, *got.(*api.CreateTableIndexResponse).TransactionID, api.TransactionSucceeded)
	if now := l.version(t, "t"); now != version {
		t.Errorf("version %d, want %d: it was built again", now, version)
	}
}

// TestRenamed: a job follows its table, also where that gets another name while it works.
func TestRenamed(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	rename := func(from, to string) {
		t.Helper()
		_, err := l.catalog.RenameTable(context.Background(), &api.RenameTableRequest{Target: api.At(from), NewTableName: to})
		if err != nil {
			t.Error(err)
		}
	}
	var once sync.Once
	e := l.engine(meddle(func(w engine.Worker, ctx context.Context, operation string, request any) (map[string]any, error) {
		once.Do(func() { rename("u", "v") })
		return w.Perform(ctx, operation, request, nil)
	}))
	job := backfill(t, e)
	rename("t", "u")
	run(t, e)
	l.until(t, job, api.TransactionSucceeded)
	if n := l.filled(t, "v"); n != 3 {
		t.Errorf("%d rows are filled", n)
	}
}

// TestDropped: a job whose table is dropped fails and says so, and does nothing to another table of the name.
func TestDropped(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	e := l.engine()
	job := backfill(t, e)
	if _, err := l.catalog.DropTable(t.Context(), &api.DropTableRequest{Target: api.At("t")}); err != nil {
		t.Fatal(err)
	}
	l.create(t)
	run(t, e)
	p := l.until(t, job, api.TransactionFailed)
	if p["job.error_code"] != "4" || !strings.Contains(p["job.error"], "was dropped") {
		t.Errorf("failed with %q, %q", p["job.error_code"], p["job.error"])
	}
	if n := l.filled(t, "t"); n != 0 {
		t.Errorf("%d rows of another table are filled", n)
	}
}

// TestTriedAgain: what comes and goes does not fail a job, up to a bound; what it was is told then.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	away := api.Errorf(api.CodeServiceUnavailable, "no worker is there")
	for tries, want := range map[int]api.TransactionStatus{1: api.TransactionFailed, 2: api.TransactionSucceeded} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			l := newLake(t)
			l.create(t)
			var once sync.Once
			e := l.engine(func(o *durable.Options) { o.Tries = tries }, meddle(func(w engine.Worker, ctx context.Context, operation string, request any) (map[string]any, error) {
				failed := false
				once.Do(func() { failed = true })
				if failed {
					return nil, away
				}
				return w.Perform(ctx, operation, request, nil)
			}))
			run(t, e)
			p := l.until(t, backfill(t, e), want)
			if failed := want == api.TransactionFailed; failed != (p["job.error"] == away.Message) {
				t.Errorf("properties %v", p)
			}
		})
	}
}

// TestTogether: two servers share the jobs of one state, and none is performed twice.
func TestTogether(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	var mu sync.Mutex // one at a time, so that they do not meet in the table, which would have them tried again
	performed := 0
	count := meddle(func(w engine.Worker, ctx context.Context, operation string, request any) (map[string]any, error) {
		mu.Lock()
		defer mu.Unlock()
		performed++
		return w.Perform(ctx, operation, request, nil)
	})
	one, two := l.engine(count), l.engine(count)
	var all []string
	for range 6 {
		all = append(all, backfill(t, one))
	}
	run(t, one)
	run(t, two)
	for _, job := range all {
		l.until(t, job, api.TransactionSucceeded)
	}
	mu.Lock()
	defer mu.Unlock()
	if performed != len(all) {
		t.Errorf("%d jobs were performed %d times", len(all), performed)
	}
}

// view makes a view of the ids of the table "t" that refreshes itself, and fills it.
func view(t *testing.T, e engine.Engine, name string) {
	t.Helper()
	yes, no := true, false
	schema := base64.StdEncoding.EncodeToString(idSchema(t))
	got, err := e.Do(t.Context(), "CreateMaterializedView", &api.CreateMaterializedViewRequest{
		Target: api.At(name), Kind: "query", SourceQuery: "SELECT id FROM t", OutputSchema: schema, AutoRefresh: &yes, WithNoData: &no,
	})
	if err != nil {
		t.Fatal(err)
	}
	if made := got.(*api.CreateMaterializedViewResponse); made.Version != 1 || made.JobID == nil {
		t.Errorf("made %+v", made)
	}
}

// idSchema is the schema of a view: one column "id" of whole numbers, as an Arrow IPC message.
func idSchema(t *testing.T) []byte {
	t.Helper()
	code := `import pyarrow as pa, sys; sys.stdout.buffer.write(pa.schema([("id", pa.int64())]).serialize().to_pybytes())`
	text, err := exec.Command(os.Getenv("LANCEREST_PYTHON"), "-c", code).Output()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestView: a view is filled by a job, follows its source by itself where it is told to, one refresh at a time, and is forgotten once it is dropped.
func TestView(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	var running, most atomic.Int64
	var held sync.Mutex
	e := l.engine(func(o *durable.Options) { o.Refresh = 10 * time.Millisecond }, meddle(func(w engine.Worker, ctx context.Context, operation string, request any) (map[string]any, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		held.Lock()
		defer held.Unlock()
		return w.Perform(ctx, operation, request, nil)
	}))
	run(t, e)
	view(t, e, "v")
	all := "true"
	rows := func(n int64) {
		t.Helper()
		eventually(t, "rows of the view", func() bool {
			got, err := l.worker.Do(t.Context(), "CountTableRows", &api.CountTableRowsRequest{Target: api.At("v"), Predicate: &all})
			return err == nil && got.(*api.CountTableRowsResponse).Count == n
		})
	}
	rows(3)
	held.Lock() // the next refresh waits, and meanwhile the view stays behind its source
	l.do(t, "DeleteFromTable", &api.DeleteFromTableRequest{Target: api.At("t"), Predicate: "id = 1"})
	eventually(t, "a refresh", func() bool { return running.Load() > 0 })
	for range 20 {
		if n := l.left(t); n > 2 {
			t.Errorf("%d jobs, want what looks after the view and one refresh", n)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	held.Unlock()
	rows(2)
	if n := most.Load(); n != 1 {
		t.Errorf("%d refreshes at once", n)
	}
	if _, err := l.catalog.DropTable(t.Context(), &api.DropTableRequest{Target: api.At("v")}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of looking after the view", func() bool { return l.left(t) == 0 })
}

// TestViewRefused: a view that cannot be made leaves neither its name nor a job.
func TestViewRefused(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.create(t)
	e := l.engine(func(o *durable.Options) { o.Refresh = 10 * time.Millisecond })
	yes := true
	for query, code := range map[string]api.Code{"SELECT none FROM t": api.CodeTableColumnNotFound, "SELECT id FROM none": api.CodeTableNotFound, "nothing": api.CodeInvalidInput} {
		_, err := e.Do(t.Context(), "CreateMaterializedView", &api.CreateMaterializedViewRequest{
			Target: api.At("v"), Kind: "query", SourceQuery: query, OutputSchema: base64.StdEncoding.EncodeToString(idSchema(t)), AutoRefresh: &yes,
		})
		if err == nil || api.CodeOf(err) != code {
			t.Errorf("%s: %v, want code %d", query, err, code)
		}
		if _, err := l.catalog.TableExists(t.Context(), &api.TableExistsRequest{Target: api.At("v")}); err == nil || api.CodeOf(err) != api.CodeTableNotFound {
			t.Errorf("%s: the table: %v, want that there is none", query, err)
		}
	}
	run(t, e)
	eventually(t, "no jobs", func() bool { return l.left(t) == 0 })
}
