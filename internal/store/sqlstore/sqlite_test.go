package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/storetest"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, o storetest.Options) store.Store {
		t.Helper()
		return open(t, sqlstore.Unsynced(sqlstore.Options{
			Path: filepath.Join(o.Dir, "catalog.db"), RunTwice: o.RunTwice, QueueLength: o.QueueLength, Now: o.Now,
		}))
	})
}

// open opens a catalog that the test closes.
func open(t testing.TB, o sqlstore.Options) *sqlstore.SQLite {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "catalog.db")
	}
	s, err := sqlstore.OpenSQLite(t.Context(), o)
	if err != nil {
		t.Fatalf("OpenSQLite: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestOpenMakesTheDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b?x=%20#", "catalog.db")
	open(t, sqlstore.Options{Path: path})
	if _, err := os.Stat(path); err != nil {
		t.Errorf("after OpenSQLite: %v", err)
	}
}

// TestOnlyTheOwnerReads: the catalog's files are nobody else's to read, those of an older release and those that a tool makes included, under a name
// with any characters.
func TestOnlyTheOwnerReads(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes there")
	}
	o := sqlstore.Options{Path: filepath.Join(t.TempDir(), "b?x= +%20&#", "catalog.db")}
	check := func(what string, paths ...string) {
		t.Helper()
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				t.Errorf("%s: %v", what, err)
			} else if info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s has mode %v, want 0600", what, path, info.Mode())
			}
		}
	}
	all := []string{o.Path, o.Path + "-wal", o.Path + "-shm"}
	opened := func(o sqlstore.Options, what string, paths ...string) {
		t.Helper()
		s, err := sqlstore.OpenSQLite(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		check(what, paths...)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	opened(o, "new", all...)
	if err := os.Chmod(o.Path, 0o644); err != nil {
		t.Fatal(err)
	}
	opened(o, "older", all...)
	o.Beside = true
	opened(o, "beside", o.Path, o.Path+"-wal")
}

func TestOpenRefusesASecondServer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.db")
	first := open(t, sqlstore.Options{Path: path})
	_, err := sqlstore.OpenSQLite(t.Context(), sqlstore.Options{Path: path})
	want := fmt.Sprintf("lock catalog %[1]s: %[1]s.lock is held by process %d: stop that server or choose another directory: in use", path, os.Getpid())
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	if err := first.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	open(t, sqlstore.Options{Path: path})
}

func TestOpenRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.db")
	s := open(t, sqlstore.Options{Path: path})
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Exec(`INSERT INTO schema_migrations (number, applied_at) VALUES (9999, 0)`); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping: got error %v, want ErrUnavailable", err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	_, err = sqlstore.OpenSQLite(t.Context(), sqlstore.Options{Path: path})
	if err == nil || !strings.Contains(err.Error(), "schema is number 9999, this binary knows up to") {
		t.Errorf("got error %v, want a refusal of schema 9999", err)
	}
}

// A migration that was released is never edited: a catalog that has applied it would not get the change. Add a file and its sum.
func TestMigrationsAreNeverEdited(t *testing.T) {
	t.Parallel()
	got, err := sqlstore.MigrationSums()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"d3ea08bbf5abc5bcd62520b1f4390ff9c4874687a17927eae839265938754fb5",
		"c462553fb7c3c740367d16839523c2704ae8188d8780172f620d4c7eed5db0d0",
		"1cad9450cb0c0453052b8ec3b05fbae62cc35add5a27f0387daa438336ce6f00",
		"76f49443086dc9fb35b6ed3d03ac2baf77438f526f197d3adeeaec7dc7fc215c",
		"1402191c683b865df9d3e19c3b9996d78adb4236f17a03536f447d8c99f18723",
		"0dd2dd3f10203b64662df96540cbf2f7762f0c157bba9ede5fc291fe61db79ca",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unwanted difference (-want +got):\n%s", diff)
	}
}

// Every statement finds its rows by an index, so that no cost grows with the catalog.
func TestStatementsScanNothing(t *testing.T) {
	t.Parallel()
	s := open(t, sqlstore.Options{Readers: 1})
	useEverything(t, s)
	plans, err := sqlstore.Plans(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(plans) < 40 {
		t.Errorf("got %d statements, want all, at least 40", len(plans))
	}
	for sql, plan := range plans {
		for _, step := range plan {
			switch {
			case step == "SCAN b" || step == "SCAN CONSTANT ROW": // the branches found so far, and no table
			case strings.HasPrefix(step, "SCAN"), strings.Contains(step, "TEMP B-TREE"), strings.Contains(step, "AUTOMATIC"):
				t.Errorf("%s\n\t%s", sql, strings.Join(plan, "\n\t"))
			}
		}
	}
}

// useEverything calls every method once.
func useEverything(t *testing.T, s store.Store) {
	t.Helper()
	chain := lance.Chain{Table: 7}
	err := s.Update(t.Context(), func(tx store.Tx) error {
		ns := lance.Namespace{ID: tx.NewID(), Path: lance.NamespaceID{"a"}}
		table := lance.Table{ID: tx.NewID(), Path: lance.TableID{"t"}, Location: "mem:///t"}
		v := lance.Version{Slot: lance.Slot{Chain: chain, Number: 1}}
		job := store.Job{ID: tx.NewID(), Kind: "k"}
		errs := []error{
			tx.InsertNamespace(ns), tx.InsertTable(table), tx.RenameTable(table.ID, ns.ID, "u"),
			tx.InsertVersions([]lance.Version{v}), tx.InsertTransaction(lance.Transaction{ID: "x"}),
			tx.RecordAborted("x", []store.Content{{Slot: v.Slot}}), tx.AlterTransaction("x", "s", nil), tx.InsertMeta("k", "v"),
			tx.InsertJob(job), tx.RetryJob(job.ID, "", tx.Now()),
		}
		if err := tx.InsertVersions([]lance.Version{v}); !errors.Is(err, store.ErrExists) {
			errs = append(errs, fmt.Errorf("slot twice: %w", err))
		}
		if err := tx.InsertTable(table); err == nil {
			errs = append(errs, errors.New("table twice: no error"))
		}
		if _, err := tx.ResolveTransaction("none", lance.TransactionCommitted, nil); !errors.Is(err, store.ErrNotFound) {
			errs = append(errs, fmt.Errorf("resolve: %w", err))
		}
		_, err := tx.PublishVersions([]lance.Version{v})
		_, err2 := tx.MarkVersions(chain, 1, 9, lance.VersionPruned, 10)
		_, err3 := tx.LeaseJobs([]string{"k"}, 10, 0)
		errs = append(errs, err, err2, err3, tx.RemoveVersions([]lance.Slot{v.Slot}, "x"), tx.RemoveChain(chain), tx.DeleteJob(job.ID),
			tx.EndTable(table.ID, lance.TableDropped))
		_, err = tx.ForgetTable(table.ID, 10)
		reserved := lance.Transaction{ID: "y"}
		_, _, err2 = tx.Commit(store.Commitment{ID: "x"})
		errs = append(errs, err, err2, tx.Reserve(reserved, []lance.Version{{Slot: v.Slot, Transaction: "y"}}))
		if err := tx.Reserve(reserved, []lance.Version{{Slot: v.Slot}}); !errors.Is(err, store.ErrExists) {
			errs = append(errs, fmt.Errorf("reserve twice: %w", err))
		}
		if err := tx.Reserve(lance.Transaction{ID: "z"}, []lance.Version{{Slot: v.Slot}}); !errors.Is(err, store.ErrExists) {
			errs = append(errs, fmt.Errorf("reserve a slot twice: %w", err))
		}
		return errors.Join(append(errs, tx.DeleteNamespace(ns.ID))...)
	})
	if err != nil {
		t.Fatalf("Update: %v", err)
	}
	err = s.View(t.Context(), func(r store.Reader) error {
		var errs [17]error
		_, errs[0] = r.Namespace(nil)
		_, errs[1] = r.ListNamespaces(0, "", 1)
		_, errs[2] = r.Tables([]lance.TableID{{"t"}})
		_, errs[3] = r.ListTables(0, store.TablePage{Limit: 1})
		_, errs[4] = r.ListTables(0, store.TablePage{Limit: 1, WithoutDeclared: true})
		_, errs[5] = r.ListAllTables(store.TablePage{Limit: 1})
		_, errs[6] = r.ListAllTables(store.TablePage{Limit: 1, WithoutDeclared: true})
		_, errs[7] = r.Versions([]lance.Slot{{Chain: chain, Number: 1}})
		_, errs[8] = r.Heads([]lance.Chain{chain})
		_, errs[9] = r.ListVersions(chain, store.VersionPage{Limit: 1})
		_, errs[10] = r.ListVersions(chain, store.VersionPage{Limit: 1, Descending: true})
		_, errs[11] = r.PendingOn([]lance.ObjectID{7})
		_, errs[12] = r.Branches(7)
		_, errs[13] = r.PendingTransactions(time.Now(), 1)
		_, errs[14] = r.Aborted([]store.Content{{}})
		_, errs[15] = r.Jobs("k", 0, 1)
		_, errs[16] = r.JobsDue([]string{"k"}, time.Now())
		if _, err := r.TableByID(7); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if _, err := r.Transaction("none"); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if _, err := r.Look(store.Question{Named: []store.NamedSlot{{}}}); err != nil {
			return err
		}
		_, err := r.Meta("k")
		return errors.Join(append(errs[:], err)...)
	})
	if err != nil {
		t.Fatalf("View: %v", err)
	}
}

// What an Update has answered is in the files, whatever becomes of the process: a copy of them taken while the store is open is what
// a crash leaves.
func TestAnsweredIsInTheFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, sqlstore.Options{Path: filepath.Join(dir, "catalog.db")})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.InsertMeta(fmt.Sprint(i), "x") }); err != nil {
				t.Errorf("Update: %v", err)
			}
		})
	}
	wg.Wait()
	crashed := t.TempDir()
	for _, name := range []string{"catalog.db", "catalog.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(crashed, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	after := open(t, sqlstore.Options{Path: filepath.Join(crashed, "catalog.db")})
	err := after.View(t.Context(), func(r store.Reader) error {
		for i := range 20 {
			if _, err := r.Meta(fmt.Sprint(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Updates that wait while one runs are committed together with it.
func TestGroupCommit(t *testing.T) {
	t.Parallel()
	s := open(t, sqlstore.Options{})
	var wg sync.WaitGroup
	before := s.Stats()
	err := s.Update(t.Context(), func(store.Tx) error {
		for i := range 10 {
			wg.Go(func() {
				err := s.Update(t.Context(), func(tx store.Tx) error { return tx.InsertMeta(fmt.Sprint(i), "x") })
				if err != nil {
					t.Errorf("Update: %v", err)
				}
			})
		}
		for s.Stats().Waiting < 10 {
			runtime.Gosched()
		}
		return nil
	})
	if err != nil {
		t.Fatalf("Update: %v", err)
	}
	wg.Wait()
	after := s.Stats()
	if groups, updates := after.Groups-before.Groups, after.Updates-before.Updates; updates != 11 || groups > 3 {
		t.Errorf("got %d updates in %d groups, want 11 in few", updates, groups)
	}
	if after.LargestGroup < 2 {
		t.Errorf("got largest group %d, want several", after.LargestGroup)
	}
}

// A closure that ends its goroutine, as a test's FailNow does, ends its own and nobody else's.
func TestGoexitInAClosure(t *testing.T) {
	t.Parallel()
	s := open(t, sqlstore.Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Update(context.Background(), func(tx store.Tx) error {
			_ = tx.InsertMeta("k", "v")
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.InsertMeta("k", "v") }); err != nil {
		t.Errorf("Update: %v", err)
	}
}

func TestATakenIDRunsAgain(t *testing.T) {
	t.Parallel()
	s := open(t, sqlstore.Options{})
	insert := func(draw func(tx store.Tx, run int) lance.ObjectID) (int, error) {
		runs := 0
		err := s.Update(t.Context(), func(tx store.Tx) error {
			runs++
			return tx.InsertJob(store.Job{ID: draw(tx, runs), Kind: "k"})
		})
		return runs, err
	}
	if _, err := insert(func(store.Tx, int) lance.ObjectID { return 7 }); err != nil {
		t.Fatalf("Update: %v", err)
	}
	runs, err := insert(func(tx store.Tx, run int) lance.ObjectID {
		if run == 1 {
			return 7
		}
		return tx.NewID()
	})
	if runs != 2 || err != nil {
		t.Errorf("taken once: got %d runs and error %v, want 2 and nil", runs, err)
	}
	runs, err = insert(func(store.Tx, int) lance.ObjectID { return 7 })
	if runs < 2 || !errors.Is(err, store.ErrContention) {
		t.Errorf("taken always: got %d runs and error %v, want several and ErrContention", runs, err)
	}
}

// A View that stays open keeps the log from beginning anew, but neither stops the writers nor makes the log grow once it is over.
func TestLogWrapsAfterALongView(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.db")
	s := open(t, sqlstore.Unsynced(sqlstore.Options{Path: path}))
	logSize := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	payload := strings.Repeat("x", 1<<20)
	write := func(megabytes int) {
		for range megabytes {
			err := s.Update(t.Context(), func(tx store.Tx) error {
				id := tx.NewID()
				return errors.Join(tx.InsertJob(store.Job{ID: id, Kind: "k", Payload: payload}), tx.DeleteJob(id))
			})
			if err != nil {
				t.Fatalf("Update: %v", err)
			}
		}
	}
	err := s.View(t.Context(), func(r store.Reader) error {
		if _, err := r.Namespace(nil); err != nil {
			return err
		}
		write(80)
		return nil
	})
	if err != nil {
		t.Fatalf("View: %v", err)
	}
	before := logSize()
	if errs := s.Stats().CheckpointErrors; errs == 0 {
		t.Errorf("the log has %d bytes and no checkpoint failed: the test does not reach what it tests", before)
	}
	write(100)
	if after := logSize(); after > before+(32<<20) {
		t.Errorf("the log grew from %d to %d bytes after the View", before, after)
	}
}
