package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
)

// With -postgres the same operations are measured with the state in PostgreSQL, on a catalog of -tables and on one of -large tables in
// databases of one cluster, and beside `version/create` pgbench runs the statements of one, with as many clients on tables of their own.

// database is one catalog in the cluster, with a server on it.
type database struct {
	*target
	url     string
	script  string             // of pgbench
	counted map[string]float64 // of its metrics, when they were read last
}

// stateLine is one operation in PostgreSQL.
type stateLine struct {
	op      operation
	servers [2]summary // with few tables and with many
	pgbench [2]summary
	// ofPgbench is how much of what pgbench did the server did, fewToMany how many times as fast it is with few tables as with many.
	ofPgbench [2]float64
	fewToMany float64
}

// stateResult is one run.
type stateResult struct {
	*result
	lines   []stateLine
	version string // of the database
}

// stateOperations are those that are measured: what costs the database anything of its own.
func stateOperations(chosen []operation) []operation {
	var ops []operation
	for _, op := range chosen {
		if op.name != "list" {
			ops = append(ops, op)
		}
	}
	return ops
}

// measurePostgres compares the operations on a small catalog and a large one, and with pgbench.
func measurePostgres(ctx context.Context, o options, dir string, chosen []operation) (*stateResult, error) {
	ops := stateOperations(chosen)
	r := &stateResult{result: &result{options: o, started: time.Now(), machine: machine(), loads: "load " + loadavg()}}
	cluster, err := url.Parse(os.Getenv("LANCEREST_STATE"))
	if err != nil || cluster.Host == "" {
		return nil, errors.New("-postgres: LANCEREST_STATE names no PostgreSQL cluster, and the bench makes databases in it: go run ./test/withpostgres -durable go run ./bench -postgres")
	}
	if r.version, err = sql(ctx, cluster.String(), `SHOW server_version`); err != nil {
		return nil, err
	}
	r.version, _, _ = strings.Cut(r.version, " ")
	binary, err := build(ctx, dir)
	if err != nil {
		return nil, err
	}
	var both [2]*database
	defer func() {
		for _, d := range both {
			if d != nil {
				d.process.stop()
			}
		}
	}()
	for i, tables := range []int{o.tables, o.large} {
		if both[i], err = r.openDatabase(ctx, cluster, filepath.Join(dir, fmt.Sprint("catalog", i)), binary, tables); err != nil {
			return nil, err
		}
	}
	for _, op := range ops {
		rate, err := syncs(dir, time.Second)
		if err != nil {
			return nil, err
		}
		r.syncs = append(r.syncs, rate)
		l, err := r.line(ctx, op, both)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.name, err)
		}
		r.lines = append(r.lines, l)
	}
	r.loads += " before, " + loadavg() + " after"
	r.took = time.Since(r.started)
	return r, nil
}

// line measures one operation: the two servers and, where it runs, pgbench beside each take turns, in another order each round.
func (r *stateResult) line(ctx context.Context, op operation, both [2]*database) (stateLine, error) {
	l := stateLine{op: op}
	var servers, pgbenches [2][]cell
	for round := range r.options.rounds {
		for k := range both {
			i := (k + round) % len(both)
			d := both[i]
			c, err := one(ctx, op, d.target, r.options.duration)
			if err != nil {
				return l, fmt.Errorf("%s: %w\n%s", d.label, err, d.process.said())
			}
			servers[i] = append(servers[i], c)
			if op.name != "create" {
				continue
			}
			if c, err = d.pgbench(ctx, r.options); err != nil {
				return l, err
			}
			pgbenches[i] = append(pgbenches[i], c)
		}
	}
	for i, d := range both {
		if err := r.retries(op, d); err != nil {
			return l, err
		}
		l.servers[i] = summaryOf(servers[i], op.each)
		progress("%-9s %-17s %s", op.name, d.label, l.servers[i])
		if pgbenches[i] != nil {
			l.pgbench[i] = summaryOf(pgbenches[i], 1)
			l.ofPgbench[i] = ratio(servers[i], pgbenches[i])
			progress("%-9s %-17s %s/s (%s to %s)", op.name, "pgbench", number(l.pgbench[i].rate), number(l.pgbench[i].low), number(l.pgbench[i].high))
		}
	}
	l.fewToMany = ratio(servers[0], servers[1])
	return l, nil
}

// ratio is the median of what some cells are to others of the same rounds.
func ratio(cells, others []cell) float64 {
	ratios := make([]float64, len(cells))
	for i := range cells {
		ratios[i] = cells[i].rate(1) / others[i].rate(1)
	}
	return median(ratios)
}

// counter is a line of the server's metrics.
var counter = regexp.MustCompile(`(?m)^lancerest_state_(updates|retries)_total ([0-9.e+]+)$`)

// retries notes how many of a server's transactions met another one in the database and ran again since it was asked last.
func (r *stateResult) retries(op operation, d *database) error {
	res, err := http.Get("http://" + d.address + "/metrics")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	now := map[string]float64{}
	for _, m := range counter.FindAllSubmatch(body, -1) {
		if now[string(m[1])], err = strconv.ParseFloat(string(m[2]), 64); err != nil {
			return err
		}
	}
	updates, retries := now["updates"]-d.counted["updates"], now["retries"]-d.counted["retries"]
	if updates > 0 {
		r.note("%s, %s: %s database transactions, of which %.1f %% met another one and ran again", op.name, d.label, number(updates), 100*retries/updates)
	}
	d.counted = now
	return nil
}

// openDatabase makes a database, has a server make its schema and some tables in it, and adds tables until there are enough.
func (r *stateResult) openDatabase(ctx context.Context, cluster *url.URL, dir, binary string, tables int) (*database, error) {
	name := fmt.Sprintf("bench%d", tables)
	if _, err := sql(ctx, cluster.String(), `CREATE DATABASE `+name); err != nil {
		return nil, err
	}
	at := *cluster
	at.Path = "/" + name
	d := &database{url: at.String()}
	if err := os.MkdirAll(filepath.Join(dir, "tables"), 0o755); err != nil {
		return nil, err
	}
	script, err := r.statements(ctx, binary, d.url, dir)
	if err != nil {
		return nil, fmt.Errorf("write down the statements of one version/create: %w", err)
	}
	d.script = filepath.Join(dir, "script.sql")
	if err := os.WriteFile(d.script, []byte(script), 0o644); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := addTables(ctx, d.url, tables); err != nil {
		return nil, err
	}
	progress("loaded %d tables into PostgreSQL in %.1f s", tables, time.Since(begin).Seconds())
	p, address, err := start(stateServer(binary, d.url, dir), dir)
	if err != nil {
		return nil, err
	}
	d.target = newStateTarget(fmt.Sprintf("with %s tables", number(float64(tables))), address, tables, r.options, p)
	return d, nil
}

func newStateTarget(label, address string, tables int, o options, p *process) *target {
	return &target{label: label, address: address, tables: tables, clients: o.clients, fastest: 6000, queues: map[string][]*queue{}, process: p}
}

func stateServer(binary, url, dir string, flags ...string) *exec.Cmd {
	args := []string{"serve", "--state", url, "--root", filepath.Join(dir, "tables"), "--listen", "127.0.0.1:0", "--log-level", "warn", "--engine", "off"}
	return exec.Command(binary, append(args, flags...)...)
}

// addTables copies the table that is there, with its version and the transaction that made it, until there are so many: the rows that as many
// requests would have left, but for what their manifests say.
func addTables(ctx context.Context, url string, tables int) error {
	copies := fmt.Sprintf(`
FROM %%s, objects o, generate_series(1, %d) i
WHERE o.kind = 2 AND o.name = '%s' AND %%s`, tables-1, loaded(0))
	// Ids as the server draws them: at each of many places they grow.
	const id = "(i::bigint * 7919 % 65536 << 47 | (o.id + i) & ((1::bigint << 47) - 1))"
	const txn = "md5(i::text)::uuid::text"
	for _, statement := range []string{
		`INSERT INTO objects SELECT (jsonb_populate_record(o, jsonb_build_object('id', ` + id + `, 'name', 't' || lpad(i::text, 7, '0'),
	'location', replace(o.location, '/tables/', '/tables/' || lpad(to_hex(` + id + `), 16, '0'))))).*` + fmt.Sprintf(copies, "(SELECT 1) one", "true"),
		`INSERT INTO transactions SELECT (jsonb_populate_record(t, jsonb_build_object('id', ` + txn + `))).*` +
			fmt.Sprintf(copies, "transactions t", "t.id = (SELECT txn FROM versions v WHERE v.table_id = o.id)"),
		`INSERT INTO versions SELECT (jsonb_populate_record(v, jsonb_build_object('table_id', ` + id + `, 'txn', ` + txn + `))).*` +
			fmt.Sprintf(copies, "versions v", "v.table_id = o.id"),
		`VACUUM ANALYZE`, `CHECKPOINT`,
	} {
		if _, err := sql(ctx, url, statement); err != nil {
			return err
		}
	}
	return nil
}

// sql runs a statement with psql and returns what it prints.
func sql(ctx context.Context, url, statement string) (string, error) {
	cmd := exec.CommandContext(ctx, "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "-v", "ON_ERROR_STOP=1", "-c", statement, url)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("psql: %.200s: %w\n%s", statement, err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// prepareTables makes the namespace, a first table with a version, and a table with a version for each client of pgbench. It returns the
// last one of these.
func (t *target) prepareTables() (table, error) {
	create := request(http.MethodPost, "/v1/namespace/"+namespace+"/create"+query, t.address, []byte(`{"id":["`+namespace+`"]}`))
	if _, err := t.call(create); err != nil {
		return table{}, err
	}
	names := []string{loaded(0)}
	for i := range t.clients {
		names = append(names, fmt.Sprint(i))
	}
	var last table
	for _, name := range names {
		var err error
		if last, err = t.declare(name); err != nil {
			return last, err
		}
		if err := t.commit(last, 1); err != nil {
			return last, err
		}
	}
	return last, nil
}

// commit stages and commits one version.
func (t *target) commit(to table, v lance.VersionNumber) error {
	data, err := numbered(v)
	if err != nil {
		return err
	}
	staged, err := to.stage(v, data)
	if err != nil {
		return err
	}
	_, err = t.call(request(http.MethodPost, path(to.name, "version/create"), t.address, encode(staged)))
	return err
}
