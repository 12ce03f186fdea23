package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/check"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
	"github.com/lancerest/lancerest/internal/store"
)

// never is an age that no object reaches: the storage of these tests begins its clock in 1970.
const never = 200 * 365 * 24 * time.Hour

// check compares the catalog with storage and returns what was found.
func (s *server) check(t testing.TB, opts check.Options) (check.Summary, []check.Finding) {
	t.Helper()
	var found []check.Finding
	opts.Report = func(f check.Finding) { found = append(found, f) }
	sum, err := s.Check(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Wrong+sum.Mended != len(found) {
		t.Errorf("%d wrong and %d mended of %d findings", sum.Wrong, sum.Mended, len(found))
	}
	return sum, found
}

// snapshot returns all objects of a lake.
func (l *lake) snapshot(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for info, err := range l.objects.List(context.Background(), l.root.Key()+"/", "") {
		if err != nil {
			t.Fatal(err)
		}
		data, _, err := l.objects.Get(context.Background(), info.Key, 0)
		if err != nil {
			t.Fatal(err)
		}
		all[info.Key] = string(data)
	}
	return all
}

// wrong is one way in which a catalog and its storage differ.
type wrong struct {
	make func(t *testing.T, s *server, tb table) // to table "t", whose versions are 1 to 3
	find check.Finding                           // What and Action need only be contained
	left bool                                    // a person has to decide: it is not mended
	good func(t *testing.T, s *server, tb table) // what must hold after the repair, nil for nothing more
}

// wrongs has at least one of every kind of finding.
func wrongs() map[string]wrong {
	all := map[string]wrong{}
	for _, some := range []map[string]wrong{wrongVersions(), wrongObjects(), wrongWork(), wrongReferences()} {
		for name, w := range some {
			all[name] = w
		}
	}
	return all
}

// wrongReferences are tags and branches that name versions which are gone.
func wrongReferences() map[string]wrong {
	return map[string]wrong{
		"a tag of a version that is gone": {
			make: func(t *testing.T, s *server, tb table) {
				s.lake.put(t, lance.TagKey(tb.dir, "x"), []byte(`{"branch":null,"version":9,"manifestSize":1}`))
			},
			find: check.Finding{Kind: check.Reference, Table: "t", Version: 9, What: "tag x names this version, which is gone"},
			left: true,
		},
		"a tag on a branch that is gone": {
			make: func(t *testing.T, s *server, tb table) {
				s.lake.put(t, lance.TagKey(tb.dir, "x"), []byte(`{"branch":"dev","version":2,"manifestSize":1}`))
			},
			find: check.Finding{Kind: check.Reference, Table: "t", Branch: "dev", Version: 2, What: "delete the tag x"},
			left: true,
		},
		"a branch of a version that is gone": {
			make: func(t *testing.T, s *server, tb table) { s.lake.register(t, tb, "dev", 7) },
			find: check.Finding{Kind: check.Reference, Table: "t", Version: 7, What: "branch dev names this version"},
			left: true,
		},
	}
}

// wrongVersions are versions whose manifests are not theirs.
func wrongVersions() map[string]wrong {
	const gone = "of the latest version is gone"
	return map[string]wrong{
		"an old version was cleaned up": {
			make: func(t *testing.T, s *server, tb table) { s.lake.remove(t, tb.final(2)) },
			find: check.Finding{Kind: check.Missing, Table: "t", Version: 2, What: "cleanup", Action: "mark it pruned"},
			good: func(t *testing.T, s *server, tb table) { s.listed(t, tb, 1, 3) },
		},
		"the latest is gone and staged": {
			make: func(t *testing.T, s *server, tb table) { s.lake.remove(t, tb.final(3)) },
			find: check.Finding{Kind: check.Missing, Table: "t", Version: 3, What: gone, Action: "publish it again from "},
			good: func(t *testing.T, s *server, tb table) {
				s.listed(t, tb, 1, 2, 3)
				s.lake.holds(t, tb.final(3), s.lake.stagedBytes(t, tb, 3))
			},
		},
		"the latest is gone for good": {
			make: func(t *testing.T, s *server, tb table) { s.lake.remove(t, tb.final(3)); s.lake.removeStaged(t, tb) },
			find: check.Finding{Kind: check.Missing, Table: "t", Version: 3, What: "and so is its staged copy"},
			left: true,
		},
		"the latest holds something else": {
			make: func(t *testing.T, s *server, tb table) {
				s.lake.remove(t, tb.final(3))
				s.lake.bypass(t, tb, 3)
			},
			find: check.Finding{Kind: check.Diverged, Table: "t", Version: 3, What: "something else than was committed"},
			left: true,
		},
		"a deleted branch": {
			make: func(t *testing.T, s *server, tb table) {
				s.mustCreate(t, s.lake.stageOn(t, tb, "b", 2))
				s.lake.register(t, tb, "b", 2)
				s.lake.wipe(t, tb, "b")
			},
			find: check.Finding{Kind: check.Branch, Table: "t", Branch: "b", Version: 2, What: "deleted in storage", Action: "remove its rows"},
			good: func(t *testing.T, s *server, tb table) {
				s.mustCreate(t, s.lake.stageOn(t, tb, "b", 1))
			},
		},
	}
}

// wrongObjects are objects that belong to no version.
func wrongObjects() map[string]wrong {
	return map[string]wrong{
		"published past the catalog": {
			make: func(t *testing.T, s *server, tb table) { s.lake.bypass(t, tb, 4) },
			find: check.Finding{Kind: check.Foreign, Table: "t", Version: 4, What: "past the catalog", Action: "adopt it"},
			good: func(t *testing.T, s *server, tb table) { s.listed(t, tb, 1, 2, 3, 4) },
		},
		"no manifest under a final name": {
			make: func(t *testing.T, s *server, tb table) { s.lake.put(t, tb.final(4), []byte("no manifest")) },
			find: check.Finding{Kind: check.Foreign, Table: "t", Version: 4, What: "no readable manifest"},
			left: true,
		},
		"content of an aborted transaction": {
			make: func(t *testing.T, s *server, _ table) {
				x := s.beat(t)
				s.lake.put(t, x.a.final(1), x.va.data) // a put that was under way lands late
			},
			find: check.Finding{Kind: check.Foreign, Table: "a", Version: 1, What: "aborted transaction", Action: "or remove it"},
			good: func(t *testing.T, s *server, _ table) {
				a := s.tableNamed(t, "a")
				s.lake.holds(t, a.final(1), nil)
				s.listed(t, a)
			},
		},
		"left over from staging": {
			make: func(t *testing.T, s *server, tb table) { s.lake.stage(t, tb, 4) },
			find: check.Finding{Kind: check.Staged, Table: "t", What: "left over since", Action: "remove it"},
		},
	}
}

// wrongWork is work that was begun and not ended.
func wrongWork() map[string]wrong {
	return map[string]wrong{
		"a pending transaction": {
			make: func(t *testing.T, s *server, tb table) {
				other := s.declare(t, "other")
				s.lake.abandon(t, s.lake.stage(t, tb, 4), s.lake.stage(t, other, 1))
			},
			find: check.Finding{Kind: check.Pending, What: "reserved and not resolved", Action: "finish it"},
			good: func(t *testing.T, s *server, tb table) {
				s.listed(t, tb, 1, 2, 3, 4)
				s.listed(t, s.tableNamed(t, "other"), 1)
			},
		},
		"a job that failed": {
			make: func(t *testing.T, s *server, _ table) { s.lake.failedJob(t, catalog.JobForget, `{"table":12345}`) },
			find: check.Finding{Kind: check.Job, What: "failed 1 times, last with: the disk was full", Action: "run it"},
		},
		"a job that cannot succeed": {
			make: func(t *testing.T, s *server, _ table) { s.lake.failedJob(t, catalog.JobForget, `no JSON`) },
			find: check.Finding{Kind: check.Job, What: "the disk was full", Action: "run it"},
			left: true,
		},
	}
}

// failedJob adds a job that was tried once.
func (l *lake) failedJob(t testing.TB, kind, payload string) {
	t.Helper()
	err := l.state.Update(context.Background(), func(tx store.Tx) error {
		id := tx.NewID()
		if err := tx.InsertJob(store.Job{ID: id, Kind: kind, Payload: payload, RunAt: tx.Now()}); err != nil {
			return err
		}
		return tx.RetryJob(id, "the disk was full", tx.Now().Add(time.Hour))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// stagedOf returns the staged manifests of a table's main.
func (l *lake) stagedOf(t testing.TB, tb table) []objstore.Info {
	t.Helper()
	var infos []objstore.Info
	for info, err := range l.objects.List(context.Background(), lance.VersionsPrefix(tb.dir, lance.Main), "") {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(info.Key, ".manifest") {
			infos = append(infos, info)
		}
	}
	return infos
}

func (l *lake) removeStaged(t testing.TB, tb table) {
	t.Helper()
	for _, info := range l.stagedOf(t, tb) {
		l.remove(t, info.Key)
	}
}

// stagedBytes returns what is staged for a version.
func (l *lake) stagedBytes(t testing.TB, tb table, v int64) []byte {
	t.Helper()
	for _, info := range l.stagedOf(t, tb) {
		if strings.HasPrefix(info.Key, tb.final(v)) {
			data, _, err := l.objects.Get(context.Background(), info.Key, 0)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
	t.Fatalf("nothing is staged for version %d of %v", v, tb.id)
	return nil
}

// tableNamed returns a table that stands in the catalog.
func (s *server) tableNamed(t testing.TB, name string) table {
	t.Helper()
	resp, err := s.DescribeTable(context.Background(), &api.DescribeTableRequest{Target: api.At(name)})
	if err != nil {
		t.Fatal(err)
	}
	return tableAt(t, name, *resp.Location)
}

// TestCheck makes every kind of difference by hand, on a catalog that is otherwise in order, and holds that it is found; that nothing is
// changed as long as nobody asks for it; that it is mended where it can be, and is found no more; and that what cannot be mended stays.
func TestCheck(t *testing.T) {
	t.Parallel()
	kinds := map[check.Kind]bool{}
	for name, w := range wrongs() {
		kinds[w.find.Kind] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			tb := s.declare(t, "t")
			s.fill(t, tb, 1, 3)
			// Those that the catalog keeps on purpose are not left over; here they would be found beside what is looked for.
			old := check.Options{StagedAge: never}
			if sum, found := s.check(t, old); len(found) != 0 || sum.Tables != 1 || sum.Versions != 3 {
				t.Fatalf("before: %+v, %v", sum, found)
			}
			w.make(t, s, tb)
			if w.find.Kind == check.Staged {
				s.lake.removeCommitted(t, tb)
				old.StagedAge = 0
			}
			before := s.lake.snapshot(t)
			for range 2 {
				sum, found := s.check(t, old)
				if len(found) != 1 || sum.Wrong != 1 || found[0].Mended {
					t.Fatalf("%+v, %+v; want one finding", sum, found)
				}
				w.finds(t, found[0])
			}
			if diff := cmp.Diff(before, s.lake.snapshot(t)); diff != "" {
				t.Errorf("a check without repair changed storage (-before +after):\n%s", diff)
			}
			old.Repair = true
			sum, found := s.check(t, old)
			if len(found) != 1 || found[0].Mended == w.left || (sum.Wrong == 1) != w.left {
				t.Fatalf("%+v, %+v; want it mended: %v", sum, found, !w.left)
			}
			w.finds(t, found[0])
			if _, found := s.check(t, check.Options{StagedAge: old.StagedAge}); len(found) > 0 != w.left {
				t.Errorf("afterwards: %+v; want it mended: %v", found, !w.left)
			}
			if w.good != nil {
				w.good(t, s, tb)
			}
		})
	}
	for _, kind := range []check.Kind{
		check.Pending, check.Missing, check.Foreign, check.Diverged, check.Staged,
		check.Branch, check.Job, check.Reference,
	} {
		if !kinds[kind] {
			t.Errorf("no case makes a finding of kind %q", kind)
		}
	}
}

// finds fails the test unless a finding is the one that is looked for.
func (w wrong) finds(t *testing.T, got check.Finding) {
	t.Helper()
	if got.Kind != w.find.Kind || got.Table != w.find.Table || got.Branch != w.find.Branch || got.Version != w.find.Version ||
		!strings.Contains(got.What, w.find.What) || !strings.Contains(got.Action, w.find.Action) || (got.Action == "") != (w.find.Action == "") {
		t.Errorf("found %+v, want %+v", got, w.find)
	}
}

// removeCommitted removes the staged manifests whose versions are committed, as the catalog itself does after a while.
func (l *lake) removeCommitted(t testing.TB, tb table) {
	t.Helper()
	for _, info := range l.stagedOf(t, tb) {
		final, _, _ := strings.Cut(info.Key, ".manifest-")
		if _, err := l.objects.Head(context.Background(), final+".manifest"); err == nil {
			l.remove(t, info.Key)
		}
	}
}

// TestCheckWaitsForPending holds that a young transaction is nobody's leavings: a server may be at it.
func TestCheckWaitsForPending(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	s.lake.abandon(t, s.lake.stage(t, a, 1), s.lake.stage(t, b, 1))
	_, found := s.check(t, check.Options{Repair: true, PendingAge: time.Hour, StagedAge: never})
	if len(found) != 0 || len(s.lake.pending(t)) != 1 {
		t.Errorf("found %+v, %d pending; want it left alone", found, len(s.lake.pending(t)))
	}
}

// TestCheckBesideLoad holds that a check beside servers that commit, adopt and help reports nothing that is merely under way, also
// when it repairs; and that nothing is found afterwards.
func TestCheckBesideLoad(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s, other := l.server(t), l.server(t)
	const writers, commits = 4, 12
	tables := make([]table, writers+1)
	for i := range tables {
		tables[i] = s.declare(t, fmt.Sprintf("t%d", i))
	}
	var ended []<-chan error
	for w := range writers {
		ended = append(ended, async(func() error {
			for v := int64(1); v <= commits; v++ {
				if _, err := []*server{s, other}[w%2].batch(context.Background(), l.stage(t, tables[w], v)); err != nil {
					return err
				}
				if w == 0 { // one of them publishes past the catalog as well
					l.bypass(t, tables[writers], v)
				}
			}
			return nil
		}))
	}
	opts := check.Options{PendingAge: time.Minute, StagedAge: never}
	for range 5 {
		for _, f := range second(s.check(t, opts)) {
			if f.Kind != check.Foreign || f.Table != fmt.Sprintf("t%d", writers) {
				t.Errorf("beside load: %+v", f)
			}
		}
		opts.Repair = !opts.Repair
	}
	for _, c := range ended {
		if err := within(t, "writer", c); err != nil {
			t.Error(err)
		}
	}
	opts.Repair = true
	s.check(t, opts)
	sum, found := s.check(t, check.Options{StagedAge: never})
	if len(found) != 0 || sum.Tables != len(tables) || sum.Versions != (writers+1)*commits {
		t.Errorf("afterwards: %+v, %+v; want %d versions and nothing found", sum, found, (writers+1)*commits)
	}
}

func second[A, B any](_ A, b B) B { return b }

// TestCheckReadsAll holds that a check goes through all pages of tables and of versions.
func TestCheckReadsAll(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	const tables = 1003
	ops := make([]api.CommitTableOperation, tables)
	for i := range ops {
		ops[i].DeclareTable = &api.DeclareTableRequest{Target: api.At(fmt.Sprintf("t%04d", i))}
	}
	if _, err := s.mixed(context.Background(), ops...); err != nil {
		t.Fatal(err)
	}
	last := s.tableNamed(t, "t1002")
	s.lake.bypass(t, last, 1)
	sum, found := s.check(t, check.Options{})
	if sum.Tables != tables || len(found) != 1 || found[0].Table != "t1002" {
		t.Errorf("%+v, %+v; want %d tables and one finding in the last", sum, found, tables)
	}
}

// TestCheckWithAnUnreadableTable holds that a table that storage does not show is a finding, and that the others are checked; and that a check ends
// where it is the storage that does not answer.
func TestCheckWithAnUnreadableTable(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"denied": objstore.ErrDenied, "broken": objtest.ErrInjected} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			bad, good := s.declare(t, "bad"), s.declare(t, "good")
			s.fill(t, bad, 1, 1)
			s.fill(t, good, 1, 1)
			s.lake.bypass(t, good, 2)
			below := func(key string) bool { return strings.HasPrefix(key, bad.dir) }
			s.objects.Fail(objtest.Match{Key: below, Times: objtest.Forever}, objtest.Before, fault)
			sum, found := s.check(t, check.Options{StagedAge: never})
			if sum.Tables != 2 || len(found) == 0 || found[0].Kind != check.Table || found[0].Table != "bad" {
				t.Errorf("%+v, %+v; want a finding that table bad cannot be read", sum, found)
			}
			if last := found[len(found)-1]; last.Kind != check.Foreign || last.Table != "good" {
				t.Errorf("the last finding is %+v, want version 2 of table good", last)
			}
			s.objects.Fail(objtest.Match{Key: func(key string) bool { return strings.HasSuffix(key, catalog.Marker) }, Nth: 2, Times: objtest.Forever}, objtest.Before, fault)
			if _, err := s.Check(context.Background(), check.Options{Report: func(check.Finding) {}}); err == nil {
				t.Error("a check succeeds although the storage is away")
			}
		})
	}
}

// TestCheckWithoutStorage holds that a check of a storage that is away fails and concludes nothing: it marks nothing pruned (case C4).
func TestCheckWithoutStorage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	tb := s.declare(t, "t")
	s.fill(t, tb, 1, 3)
	before := s.lake.snapshot(t)
	for key := range before {
		s.lake.remove(t, key)
	}
	_, err := s.Check(context.Background(), check.Options{Repair: true, Report: func(f check.Finding) {
		if f.Mended {
			t.Errorf("mended %+v", f)
		}
	}})
	if err == nil || !strings.Contains(err.Error(), catalog.Marker) {
		t.Errorf("error %v, want one that says what is missing", err)
	}
	for key, data := range before {
		s.lake.put(t, key, bytes.Clone([]byte(data)))
	}
	s.listed(t, tb, 1, 2, 3)
}
