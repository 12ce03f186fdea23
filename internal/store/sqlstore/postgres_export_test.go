//go:build unix

package sqlstore

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
)

// PostgresPlans returns what the database would do for each statement that the store's only connection has prepared so far.
func PostgresPlans(ctx context.Context, p *Postgres) (map[string]string, error) {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SET plan_cache_mode = force_generic_plan`); err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, `SELECT name, statement, cardinality(parameter_types) FROM pg_prepared_statements`)
	if err != nil {
		return nil, err
	}
	type statement struct {
		Name, SQL string
		Args      int
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[statement])
	if err != nil {
		return nil, err
	}
	plans := map[string]string{}
	for _, s := range list {
		if verb, _, _ := strings.Cut(strings.TrimSpace(s.SQL), " "); verb == "BEGIN" || strings.Contains(s.SQL, "pg_") {
			continue
		}
		args := strings.TrimSuffix(strings.Repeat("NULL,", s.Args), ",")
		explain := fmt.Sprintf("EXPLAIN (COSTS OFF) EXECUTE %s(%s)", pgx.Identifier{s.Name}.Sanitize(), args)
		results, err := conn.Conn().PgConn().Exec(ctx, strings.Replace(explain, "()", "", 1)).ReadAll()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.SQL, err)
		}
		for _, line := range results[0].Rows {
			plans[s.SQL] += string(line[0]) + "\n"
		}
	}
	return plans, nil
}

// PostgresSchema returns the texts of the migrations in PostgreSQL's words.
func PostgresSchema() (string, error) {
	steps, err := migrations()
	var all strings.Builder
	for _, m := range steps {
		all.WriteString(postgresWords(m.text))
	}
	return all.String(), err
}

// PostgresSocket calls fn with the file descriptor of a connection of the store's.
func PostgresSocket(ctx context.Context, p *Postgres, fn func(fd uintptr)) error {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	raw, err := conn.Conn().PgConn().Conn().(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(fn)
}

// PostgresIndexes returns the first column of every index by the index's name.
func PostgresIndexes(ctx context.Context, p *Postgres) (map[string]string, error) {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, `
SELECT i.indexrelid::regclass::text, a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]`)
	if err != nil {
		return nil, err
	}
	first := map[string]string{}
	var index, column string
	_, err = pgx.ForEachRow(rows, []any{&index, &column}, func() error {
		first[index] = column
		return nil
	})
	return first, err
}
