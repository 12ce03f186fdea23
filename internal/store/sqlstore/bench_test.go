package sqlstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// clients is how many goroutines use the store at once.
const clients = 16

// concurrently spreads b.N calls of fn over the clients.
func concurrently(b *testing.B, fn func(i int64) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range clients {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := fn(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// declare adds a table with its first version.
func declare(tx store.Tx, name string) error {
	ns, err := tx.Namespace(nil)
	if err != nil {
		return err
	}
	t := lance.Table{ID: tx.NewID(), Namespace: ns.ID, Path: lance.TableID{name}, CreatedAt: tx.Now()}
	t.Location = fmt.Sprintf("file:///data/tables/%013x_%s.lance", int64(t.ID), name)
	if err := tx.InsertTable(t); err != nil {
		return err
	}
	return tx.InsertVersions([]lance.Version{{
		Slot: lance.Slot{Chain: lance.Chain{Table: t.ID}, Number: 1}, State: lance.VersionCommitted, Origin: lance.OriginCatalog,
		Transaction: "5f0c1a52-0000-4000-8000-000000000001", Scheme: lance.SchemeV2, Timestamp: tx.Now(),
		Staged: "18446744073709551614.manifest-5f0c1a52-0000-4000-8000-000000000001", Size: 1234, ETag: "5f0c1a52",
	}})
}

// preload adds n tables, many in one Update.
func preload(b *testing.B, s store.Store, n int) {
	b.Helper()
	for begin := 0; begin < n; begin += 10_000 {
		err := s.Update(b.Context(), func(tx store.Tx) error {
			for i := begin; i < min(begin+10_000, n); i++ {
				if err := declare(tx, fmt.Sprintf("preloaded%07d", i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDeclare is a durable Update that adds a table and a version.
func BenchmarkDeclare(b *testing.B) {
	s := open(b, sqlstore.Options{})
	concurrently(b, func(i int64) error {
		return s.Update(b.Context(), func(tx store.Tx) error { return declare(tx, fmt.Sprintf("t%d", i)) })
	})
	stats := s.Stats()
	b.ReportMetric(float64(stats.Updates)/float64(stats.Groups), "updates/group")
}

// BenchmarkPointRead is a View that looks up a table by its path and its head, among 100,000 tables.
func BenchmarkPointRead(b *testing.B) {
	const tables = 100_000
	s := open(b, sqlstore.Options{})
	preload(b, s, tables)
	concurrently(b, func(i int64) error {
		return s.View(b.Context(), func(r store.Reader) error { return pointRead(r, fmt.Sprintf("preloaded%07d", i*7919%tables)) })
	})
}

// pointRead looks up a table in the root and its head.
func pointRead(r store.Reader, name string) error {
	found, err := r.Tables([]lance.TableID{{name}})
	if err != nil {
		return err
	}
	_, err = r.Heads([]lance.Chain{{Table: found[0].ID}})
	return err
}
