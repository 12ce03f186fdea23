//go:build unix

package sqlstore_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
	"github.com/lancerest/lancerest/internal/store/storetest"
)

// TestPostgres runs everything that needs a server on one cluster.
func TestPostgres(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	storetest.Run(t, func(t *testing.T, o storetest.Options) store.Store {
		t.Helper()
		return openPostgres(t, sqlstore.PostgresOptions{
			URL: schema(t, cluster, o.Dir), RunTwice: o.RunTwice, Writers: o.Writers, QueueLength: o.QueueLength, Now: o.Now,
		})
	})
	for name, test := range map[string]func(t *testing.T, cluster *pgtest.Cluster){
		"one name over three replicas":      oneName,
		"opposite orders over two replicas": oppositeOrders,
		"ten replicas migrate together":     migrateTogether,
		"upgrades from every schema":        upgrades,
		"open refuses a newer schema":       newerSchema,
		"open refuses to lose commits":      asynchronousCommit,
		"open beside":                       openBeside,
		"a standing statement gives up":     statementTimeout,
		"slow statements are told":          slowStatements,
		"statements scan nothing":           postgresPlans,
		"connection lost before COMMIT":     lostBeforeCommit,
		"connection lost in COMMIT":         lostInCommit,
		"backend killed in COMMIT":          killedInCommit,
		"a URL that cannot be used":         badURL,
		"dumps between the dialects":        dumpBetween,
		"dumps that are refused":            dumpRefused,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cluster)
		})
	}
}

// schema returns the address of a schema that belongs to a name, which may be long.
func schema(t testing.TB, cluster *pgtest.Cluster, name string) string {
	t.Helper()
	return cluster.Schema(t, schemaName(name))
}

func schemaName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}

// openPostgres opens a catalog that the test closes.
func openPostgres(t testing.TB, o sqlstore.PostgresOptions) *sqlstore.Postgres {
	t.Helper()
	s, err := sqlstore.OpenPostgres(t.Context(), o)
	if err != nil {
		t.Fatalf("OpenPostgres: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// replicas opens one catalog several times, as several servers do.
func replicas(t *testing.T, cluster *pgtest.Cluster, n int) []*sqlstore.Postgres {
	t.Helper()
	list := make([]*sqlstore.Postgres, n)
	for i := range list {
		list[i] = openPostgres(t, sqlstore.PostgresOptions{URL: schema(t, cluster, t.Name()), MaxConns: 6})
	}
	return list
}

// put keeps a value under a key.
func put(ctx context.Context, s store.Store, key string) error {
	return s.Update(ctx, func(tx store.Tx) error { return tx.InsertMeta(key, "x") })
}

// kept reports whether a value is kept under a key.
func kept(t *testing.T, s store.Store, key string) bool {
	t.Helper()
	found := false
	err := s.View(t.Context(), func(r store.Reader) error {
		_, err := r.Meta(key)
		if found = err == nil; errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatalf("View: %v", err)
	}
	return found
}

func oneName(t *testing.T, cluster *pgtest.Cluster) {
	list := replicas(t, cluster, 3)
	errs := make([]error, 100)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			errs[i] = list[i%3].Update(t.Context(), func(tx store.Tx) error {
				id := tx.NewID()
				return tx.InsertTable(lance.Table{ID: id, Path: lance.TableID{"t"}, Location: fmt.Sprintf("mem:///%d", id)})
			})
		})
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, store.ErrExists) {
			t.Errorf("declare %d: got error %v, want nil or ErrExists", i, err)
		}
	}
	if won != 1 {
		t.Errorf("got %d winners, want 1", won)
	}
}

// oppositeOrders has two replicas add versions to the same chains, one from the first to the last, the other from the last to the
// first: in the database they wait for each other, and neither client sees anything of it.
func oppositeOrders(t *testing.T, cluster *pgtest.Cluster) {
	const chains, rounds = 10, 10
	list := replicas(t, cluster, 2)
	var wg sync.WaitGroup
	for i, s := range list {
		order := make([]lance.Chain, chains)
		for k := range order {
			order[k] = lance.Chain{Table: lance.ObjectID(k + 1)}
			if i == 1 {
				order[k] = lance.Chain{Table: lance.ObjectID(chains - k)}
			}
		}
		for range 3 {
			wg.Go(func() {
				for range rounds {
					if err := s.Update(t.Context(), func(tx store.Tx) error { return commitNext(tx, order) }); err != nil {
						t.Errorf("Update: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	err := list[0].View(t.Context(), func(r store.Reader) error {
		for k := range chains {
			heads, err := r.Heads([]lance.Chain{{Table: lance.ObjectID(k + 1)}})
			if err != nil {
				return err
			}
			if heads[0].Number != 2*3*rounds {
				t.Errorf("chain %d has head %d, want %d", k+1, heads[0].Number, 2*3*rounds)
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("View: %v", err)
	}
}

func migrateTogether(t *testing.T, cluster *pgtest.Cluster) {
	url := schema(t, cluster, t.Name())
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			s, err := sqlstore.OpenPostgres(t.Context(), sqlstore.PostgresOptions{URL: url, MaxConns: 2})
			if err != nil {
				t.Errorf("OpenPostgres: %v", err)
				return
			}
			if err := errors.Join(s.Ping(t.Context()), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// upgrades is TestUpgrade in PostgreSQL.
func upgrades(t *testing.T, cluster *pgtest.Cluster) {
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			o := sqlstore.PostgresOptions{URL: schema(t, cluster, t.Name())}
			beside := o
			beside.Beside = true
			f.upgrade(t, dialect{
				leave:  func(old sqlstore.Old) error { return sqlstore.LeavePostgres(t.Context(), o.URL, old) },
				open:   func() (store.Store, error) { return sqlstore.OpenPostgres(t.Context(), o) },
				beside: func() (store.Store, error) { return sqlstore.OpenPostgres(t.Context(), beside) },
			})
		})
	}
}

func newerSchema(t *testing.T, cluster *pgtest.Cluster) {
	url := schema(t, cluster, t.Name())
	s := openPostgres(t, sqlstore.PostgresOptions{URL: url})
	cluster.Exec(t, fmt.Sprintf(`INSERT INTO %q.schema_migrations (number, applied_at) VALUES (9999, 0)`, schemaName(t.Name())))
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping: got error %v, want ErrUnavailable", err)
	}
	for _, o := range []sqlstore.PostgresOptions{{URL: url}, {URL: url, Beside: true}} {
		_, err := sqlstore.OpenPostgres(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "schema is number 9999, this binary knows up to") {
			t.Errorf("got error %v, want a refusal of schema 9999", err)
		}
	}
}

func asynchronousCommit(t *testing.T, cluster *pgtest.Cluster) {
	url := schema(t, cluster, t.Name()) + "&synchronous_commit=off"
	_, err := sqlstore.OpenPostgres(t.Context(), sqlstore.PostgresOptions{URL: url})
	if err == nil || !strings.Contains(err.Error(), "set it to on") {
		t.Errorf("got error %v, want a refusal of synchronous_commit = off", err)
	}
}

func openBeside(t *testing.T, cluster *pgtest.Cluster) {
	o := sqlstore.PostgresOptions{URL: schema(t, cluster, t.Name()), Beside: true}
	if _, err := sqlstore.OpenPostgres(t.Context(), o); err == nil {
		t.Error("an empty schema was opened beside nobody, want an error")
	}
	s := openPostgres(t, sqlstore.PostgresOptions{URL: o.URL})
	beside := openPostgres(t, o)
	if err := put(t.Context(), s, "k"); err != nil {
		t.Fatal(err)
	}
	if !kept(t, beside, "k") {
		t.Error("what the server wrote is not seen beside it")
	}
}

// statementTimeout lets an Update wait for a lock that somebody holds: it gives up, and nothing was written.
func statementTimeout(t *testing.T, cluster *pgtest.Cluster) {
	url := schema(t, cluster, t.Name())
	s := openPostgres(t, sqlstore.PostgresOptions{URL: url, LockTimeout: 50 * time.Millisecond})
	holder := openPostgres(t, sqlstore.PostgresOptions{URL: url})
	err := holder.Update(t.Context(), func(tx store.Tx) error {
		if err := tx.InsertMeta("k", "x"); err != nil {
			return err
		}
		if err := put(t.Context(), s, "k"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got error %v, want ErrUnavailable", err)
		}
		return nil
	})
	if err != nil {
		t.Errorf("holder: %v", err)
	}
}

func slowStatements(t *testing.T, cluster *pgtest.Cluster) {
	var told []string
	s := openPostgres(t, sqlstore.PostgresOptions{
		URL: schema(t, cluster, t.Name()), SlowStatement: time.Nanosecond,
		OnSlow: func(ctx context.Context, slow sqlstore.SlowStatement) {
			if slow.Took <= 0 {
				t.Errorf("%s took %s", slow.SQL, slow.Took)
			}
			if operation := store.OperationFrom(ctx); operation != "" {
				told = append(told, fmt.Sprintf("%s: %d %s", operation, slow.Times, slow.SQL))
			}
		},
	})
	if err := put(store.WithOperation(t.Context(), "Mine"), s, "k"); err != nil {
		t.Fatal(err)
	}
	want := []string{`Mine: 1 BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`, "Mine: 1 COMMIT"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("slow statements (-want +got):\n%s", diff)
	}
}

// scansAnIndex reports whether a plan of a statement reads more of an index than what has one value in the index's first column, as given by first,
// or, where the statement takes no more than some rows of an order, one side of a value.
func scansAnIndex(sql, plan string, first map[string]string) bool {
	some := regexp.MustCompile(`LIMIT|min\(|max\(`).MatchString(sql)
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		m := regexp.MustCompile(`Index (?:Only )?Scan (?:Backward )?using (\w+)`).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		column := first[m[1]]
		if regexp.MustCompile(`Index Cond: .*\(`+column+` = `).MatchString(lines[i+1]) ||
			some && regexp.MustCompile(`Index Cond: .*\((ROW\(`+column+`\b.*\)|`+column+`) (<|>|<=|>=|IS NOT NULL)`).MatchString(lines[i+1]) {
			continue
		}
		return true
	}
	return false
}

// postgresPlans holds that every statement finds its rows by its index: so no cost grows with the catalog, and no serializable transaction meets
// others for having read a whole table. The database plans by what it knows of the tables: nothing at first.
func postgresPlans(t *testing.T, cluster *pgtest.Cluster) {
	s := openPostgres(t, sqlstore.PostgresOptions{URL: schema(t, cluster, t.Name()), MaxConns: 1})
	useEverything(t, s)
	lookAtPlans(t, "of an empty catalog", s)
	name := schemaName(t.Name())
	for _, tables := range []int{10, 3000} {
		for i := range tables {
			if err := s.Update(t.Context(), func(tx store.Tx) error { return declareWithRecord(tx, fmt.Sprintf("t%d-%d", tables, i)) }); err != nil {
				t.Fatal(err)
			}
		}
		cluster.Exec(t, fmt.Sprintf(`ANALYZE %[1]q.objects, %[1]q.versions, %[1]q.transactions, %[1]q.jobs, %[1]q.meta, %[1]q.aborted, %[1]q.answers`, name))
		lookAtPlans(t, fmt.Sprintf("with %d tables", tables), s)
	}
}

// declareWithRecord is declare with the transaction that the version belongs to.
func declareWithRecord(tx store.Tx, name string) error {
	return errors.Join(declare(tx, name), tx.InsertTransaction(lance.Transaction{ID: lance.TransactionID(name), State: lance.TransactionCommitted}))
}

func lookAtPlans(t *testing.T, what string, s *sqlstore.Postgres) {
	t.Helper()
	plans, err := sqlstore.PostgresPlans(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(plans) < 40 {
		t.Errorf("%s: got %d statements, want all, at least 40", what, len(plans))
	}
	first, err := sqlstore.PostgresIndexes(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for sql, plan := range plans {
		if strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "Sort") || scansAnIndex(sql, plan, first) {
			t.Errorf("%s: %s\n%s", what, sql, plan)
		}
	}
}

func badURL(t *testing.T, cluster *pgtest.Cluster) {
	for url, want := range map[string]string{
		"postgres://u:secret@127.0.0.1:notaport/d":                        "it must be postgres://",
		cluster.URL() + "?default_query_exec_mode=simple_protocol":        "leave it out",
		"postgres://u:secret@127.0.0.1:1/d":                               `database "d" at 127.0.0.1:1:`,
		"postgres://u:secret@127.0.0.1:1,127.0.0.1:2/d":                   `database "d" at 127.0.0.1:1, 127.0.0.1:2:`,
		strings.Replace(cluster.URL(), "/postgres", "/none", 1):           `database "none"`,
		cluster.URL() + "?target_session_attrs=standby&connect_timeout=2": `database "postgres"`,
	} {
		_, err := sqlstore.OpenPostgres(t.Context(), sqlstore.PostgresOptions{URL: url})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got error %v, want one that says %q and no password", url, err, want)
		}
	}
}
