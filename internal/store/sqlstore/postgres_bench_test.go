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

// benchPostgres opens a catalog that holds n tables, numbered from 1 and named as preload names them, each with its first version. The
// cluster flushes to the disk.
func benchPostgres(b *testing.B, n int) (*sqlstore.Postgres, *pgtest.Cluster) {
	b.Helper()
	cluster := pgtest.Start(b, pgtest.Options{Durable: true, Settings: map[string]string{"max_wal_size": "4GB"}})
	s := openPostgres(b, sqlstore.PostgresOptions{URL: cluster.URL()})
	cluster.Exec(b, fmt.Sprintf(`
INSERT INTO objects (id, kind, parent, name, state, location, properties, created_at)
SELECT i, 2, 0, 'preloaded' || lpad((i - 1)::text, 7, '0'), 1, 'file:///data/tables/' || lpad(to_hex(i), 13, '0') || '_t.lance/', '', 0
FROM generate_series(1, %[1]d) i`, n))
	cluster.Exec(b, fmt.Sprintf(`
INSERT INTO versions (table_id, branch, version, state, origin, txn, scheme, staged, size, e_tag, digest, ts, metadata)
SELECT i, '', 1, 1, 0, '5f0c1a52-0000-4000-8000-000000000001', 2, '', 1234, '', decode(repeat('00', 32), 'hex'), 0, ''
FROM generate_series(1, %[1]d) i`, n))
	cluster.Exec(b, `VACUUM ANALYZE`)
	return s, cluster
}

// BenchmarkPostgresDeclare is a durable Update that adds a table and a version.
func BenchmarkPostgresDeclare(b *testing.B) {
	s, _ := benchPostgres(b, 1000)
	concurrently(b, func(i int64) error {
		return s.Update(b.Context(), func(tx store.Tx) error { return declare(tx, fmt.Sprintf("t%d", i)) })
	})
	b.ReportMetric(float64(s.Stats().Retries)/float64(b.N), "retries/op")
}

// BenchmarkPostgresCommit is a durable Update that adds the next version to each of some tables, as committing one does at least.
func BenchmarkPostgresCommit(b *testing.B) {
	for _, c := range []struct{ tables, entries int64 }{{100, 1}, {1000, 1}, {1000, 10}, {100_000, 1}, {100_000, 10}} {
		b.Run(fmt.Sprintf("tables=%d/entries=%d", c.tables, c.entries), func(b *testing.B) {
			s, _ := benchPostgres(b, int(c.tables))
			b.ResetTimer()
			concurrently(b, func(i int64) error {
				own := make([]lance.Chain, c.entries)
				for k := range own {
					own[k].Table = lance.ObjectID((i*7919+int64(k)*101)%c.tables + 1)
				}
				return s.Update(b.Context(), func(tx store.Tx) error { return commitNext(tx, own) })
			})
			b.ReportMetric(float64(s.Stats().Retries)/float64(b.N), "retries/op")
		})
	}
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

// BenchmarkPostgresPointRead is a View that looks up a table by its path and its head.
func BenchmarkPostgresPointRead(b *testing.B) {
	for _, tables := range []int64{1000, 100_000} {
		b.Run(fmt.Sprintf("tables=%d", tables), func(b *testing.B) {
			s, _ := benchPostgres(b, int(tables))
			concurrently(b, func(i int64) error {
				return s.View(b.Context(), func(r store.Reader) error { return pointRead(r, fmt.Sprintf("preloaded%07d", i*7919%tables)) })
			})
		})
	}
}

// BenchmarkPgbench is what pgbench reaches with the statements of BenchmarkPostgresCommit and one entry, for comparison.
func BenchmarkPgbench(b *testing.B) {
	for _, tables := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("tables=%d", tables), func(b *testing.B) {
			_, cluster := benchPostgres(b, tables)
			b.ResetTimer()
			rate := cluster.Pgbench(b, clients, fmt.Sprintf(`
\set t random(1, %d)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT version + 1 AS next FROM versions WHERE table_id = :t AND branch = '' AND version > 0 ORDER BY version DESC LIMIT 1 \gset
INSERT INTO versions (table_id, branch, version, state, origin, txn, scheme, staged, size, e_tag, digest, ts, metadata)
VALUES (:t, '', :next, 1, 0, '5f0c1a52-0000-4000-8000-000000000001', 2, '', 1234, '', decode(repeat('00', 32), 'hex'), 0, '')
ON CONFLICT DO NOTHING;
COMMIT;
`, tables))
			b.ReportMetric(rate, "ops/s")
		})
	}
}
