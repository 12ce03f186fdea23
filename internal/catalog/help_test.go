package catalog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// readers are all ways in which somebody may meet a pending transaction on tables a and b. Each must finish it first (C7).
var readers = map[string]func(s *server, a, b table) error{
	"describe the version": func(s *server, _, b table) error { _, err := s.describe(context.Background(), b, 1); return err },
	"describe the latest": func(s *server, _, b table) error {
		_, err := s.DescribeTableVersion(context.Background(), &api.DescribeTableVersionRequest{Target: api.At(b.id...)})
		return err
	},
	"list versions": func(s *server, _, b table) error {
		resp, err := s.ListTableVersions(context.Background(), &api.ListTableVersionsRequest{Target: api.At(b.id...)})
		if err == nil && len(resp.Versions) != 1 {
			err = fmt.Errorf("%d versions are listed", len(resp.Versions))
		}
		return err
	},
	"describe the table": func(s *server, _, b table) error {
		yes := true
		resp, err := s.DescribeTable(context.Background(), &api.DescribeTableRequest{Target: api.At(b.id...), CheckDeclared: &yes})
		if err == nil && *resp.IsOnlyDeclared {
			err = fmt.Errorf("the table is said to be only declared")
		}
		return err
	},
	"table exists": func(s *server, _, b table) error {
		v := int64(1)
		_, err := s.TableExists(context.Background(), &api.TableExistsRequest{Target: api.At(b.id...), Version: &v})
		return err
	},
	"deregister": func(s *server, _, b table) error {
		_, err := s.DeregisterTable(context.Background(), &api.DeregisterTableRequest{Target: api.At(b.id...)})
		return err
	},
	"drop": func(s *server, _, b table) error {
		_, err := s.DropTable(context.Background(), &api.DropTableRequest{Target: api.At(b.id...)})
		return err
	},
	"recover": func(s *server, _, _ table) error {
		// It takes those that began before now, in whole milliseconds.
		for n := 0; n == 0; {
			var err error
			if n, err = s.Recover(context.Background(), catalog.RecoverAll); err != nil {
				return err
			}
		}
		return nil
	},
	"tag a version": func(s *server, _, b table) error {
		_, err := s.CreateTableTag(context.Background(), &api.CreateTableTagRequest{Target: api.At(b.id...), Tag: "tag", Version: 1})
		return err
	},
}

// TestWhoeverMeetsAPendingTransactionFinishesIt holds rule C7: a transaction that a dead server left half published is complete
// before anybody is told anything of it.
func TestWhoeverMeetsAPendingTransactionFinishesIt(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	for name, read := range readers {
		s := l.server(t)
		a, b := s.declare(t, "a to "+name), s.declare(t, "b to "+name)
		va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
		l.abandon(t, va, vb)
		if err := read(s, a, b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		l.holds(t, a.final(1), va.data)
		l.holds(t, b.final(1), vb.data)
		if ids := l.pending(t); len(ids) != 0 {
			t.Errorf("%s: pending transactions %v", name, ids)
		}
		if n := s.told(catalog.EventHelped); n != 1 {
			t.Errorf("%s: %d helps were told of", name, n)
		}
		s.shows(t, a, 1, va.data)
	}
}

// TestDescribingATransactionFinishesIt is the same for the transaction itself.
func TestDescribingATransactionFinishesIt(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	l.abandon(t, va, vb)
	id := string(l.pending(t)[0])
	resp, err := s.DescribeTransaction(context.Background(), &api.DescribeTransactionRequest{Target: api.At(id)})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Status != api.TransactionSucceeded {
		t.Errorf("status %s", resp.Status)
	}
	l.holds(t, b.final(1), vb.data)
}

// TestRecoverLeavesWhatLives holds that the background does not race with commits under way: only what is older than a commit may
// take is finished by it.
func TestRecoverLeavesWhatLives(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.server(t)
	a, b := s.declare(t, "a"), s.declare(t, "b")
	l.abandon(t, l.stage(t, a, 1), l.stage(t, b, 1))
	if n, err := s.Recover(context.Background(), catalog.RecoverStale); n != 0 || err != nil {
		t.Errorf("found %d stale transactions, error %v", n, err)
	}
	impatient := l.server(t, func(o *catalog.Options) { o.CommitTimeout = time.Nanosecond })
	for n := 0; n == 0; {
		// Its own time for finishing is as short, so it finds and fails.
		n, _ = impatient.Recover(context.Background(), catalog.RecoverStale)
	}
	if len(l.pending(t)) != 1 {
		t.Error("the transaction is not pending any more")
	}
	s.listed(t, b, 1)
}

// TestManyHelpersAndTheDriver lets two servers finish a transaction whose driver is slow and comes back: all of them end well, and
// all say the same (C6, C7).
func TestManyHelpersAndTheDriver(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	driver, first, second := l.server(t), l.server(t), l.server(t)
	a, b := driver.declare(t, "a"), driver.declare(t, "b")
	va, vb := l.stage(t, a, 1), l.stage(t, b, 1)
	gate := driver.objects.Hold(putOf(a.final(1)), objtest.Before)
	answer := async(func() error { _, err := driver.batch(context.Background(), va, vb); return err })
	within(t, "the driver's put", gate.Reached())
	one := async(func() error { _, err := first.describe(context.Background(), a, 1); return err })
	two := async(func() error { _, err := second.describe(context.Background(), b, 1); return err })
	for _, c := range []<-chan error{one, two} {
		if err := within(t, "a helper", c); err != nil {
			t.Error(err)
		}
	}
	gate.Release()
	if err := within(t, "the driver", answer); err != nil {
		t.Errorf("the driver: %v", err)
	}
	first.shows(t, a, 1, va.data)
	second.shows(t, b, 1, vb.data)
}

// TestHeadsAgreeOnAllServers holds rule C15: what one server answered, every other shows at once.
func TestHeadsAgreeOnAllServers(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	servers := []*server{l.server(t), l.server(t)}
	tb := servers[0].declare(t, "t")
	for v := int64(1); v <= 20; v++ {
		sv := l.stage(t, tb, v)
		servers[v%2].mustCreate(t, sv)
		resp, err := servers[(v+1)%2].DescribeTableVersion(context.Background(), &api.DescribeTableVersionRequest{Target: api.At(tb.id...)})
		if err != nil {
			t.Fatal(err)
		}
		if resp.Version.Version != v || resp.Version.Metadata["mark"] != sv.Metadata["mark"] {
			t.Fatalf("after version %d the other server's latest is %d", v, resp.Version.Version)
		}
	}
}
