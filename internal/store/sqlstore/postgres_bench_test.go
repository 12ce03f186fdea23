//go:build unix

package sqlstore_test

import (
	"fmt"
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// benchPostgres opens a catalog in a cluster that flushes to the disk.
func benchPostgres(b *testing.B) *sqlstore.Postgres {
	b.Helper()
	return openPostgres(b, sqlstore.PostgresOptions{URL: pgtest.Start(b, pgtest.Options{Durable: true}).URL()})
}

// BenchmarkPostgresDeclare is a durable Update that adds a table and a version.
func BenchmarkPostgresDeclare(b *testing.B) {
	s := benchPostgres(b)
	concurrently(b, func(i int64) error {
		return s.Update(b.Context(), func(tx store.Tx) error { return declare(tx, fmt.Sprintf("t%d", i)) })
	})
	b.ReportMetric(float64(s.Stats().Retries)/float64(b.N), "retries/op")
}

// BenchmarkPostgresCommit is a durable Update that adds the next version to each of some tables, as committing one does at least.
func BenchmarkPostgresCommit(b *testing.B) {
	for _, c := range []struct{ tables, entries int64 }{{100, 1}, {10_000, 1}, {10_000, 10}} {
		b.Run(fmt.Sprintf("tables=%d/entries=%d", c.tables, c.entries), func(b *testing.B) {
			s := benchPostgres(b)
			preload(b, s, int(c.tables))
			chains := chainsOf(b, s, int(c.tables))
			b.ResetTimer()
			before := s.Stats().Retries
			concurrently(b, func(i int64) error {
				own := make([]lance.Chain, c.entries)
				for k := range own {
					own[k] = chains[(i*7919+int64(k)*101)%c.tables]
				}
				return s.Update(b.Context(), func(tx store.Tx) error { return commitNext(tx, own) })
			})
			b.ReportMetric(float64(s.Stats().Retries-before)/float64(b.N), "retries/op")
		})
	}
}

// chainsOf returns the main branches of the tables that preload made.
func chainsOf(b *testing.B, s store.Store, n int) []lance.Chain {
	b.Helper()
	chains := make([]lance.Chain, 0, n)
	err := s.View(b.Context(), func(r store.Reader) error {
		list, err := r.ListTables(lance.RootID, store.TablePage{Limit: n})
		for _, t := range list {
			chains = append(chains, lance.Chain{Table: t.ID})
		}
		return err
	})
	if err != nil || len(chains) != n {
		b.Fatalf("listed %d tables, want %d: %v", len(chains), n, err)
	}
	return chains
}

// commitNext reads the heads of chains and adds the next version to each.
func commitNext(tx store.Tx, chains []lance.Chain) error {
	heads, err := tx.Heads(chains)
	if err != nil {
		return err
	}
	for i := range heads {
		heads[i].Slot = lance.Slot{Chain: chains[i], Number: heads[i].Number + 1}
		heads[i].Timestamp = tx.Now()
	}
	return tx.InsertVersions(heads)
}

// BenchmarkPostgresPointRead is a View that looks up a table by its path and its head, among 100,000 tables.
func BenchmarkPostgresPointRead(b *testing.B) {
	const tables = 100_000
	s := benchPostgres(b)
	preload(b, s, tables)
	concurrently(b, func(i int64) error {
		return s.View(b.Context(), func(r store.Reader) error { return pointRead(r, fmt.Sprintf("preloaded%07d", i*7919%tables)) })
	})
}
