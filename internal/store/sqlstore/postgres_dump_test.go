//go:build unix

package sqlstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/sqlstore/dumpfile"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// dumpBetween carries a state from SQLite to PostgreSQL, from there to another PostgreSQL and back to SQLite.
func dumpBetween(t *testing.T, cluster *pgtest.Cluster) {
	from := fresh(t)
	fill(t, from, pages)
	dump := export(t, from)
	one := openPostgres(t, sqlstore.PostgresOptions{URL: schema(t, cluster, t.Name()+"/one")})
	two := openPostgres(t, sqlstore.PostgresOptions{URL: schema(t, cluster, t.Name()+"/two")})
	if got := carried(t, dump, one); got != dump {
		t.Error("PostgreSQL exports something else than what SQLite exported")
	}
	if got := carried(t, export(t, one), two); got != dump {
		t.Error("the second PostgreSQL exports something else than the first")
	}
	if got := carried(t, export(t, two), fresh(t)); got != dump {
		t.Error("SQLite exports something else than what it got from PostgreSQL")
	}
	if _, err := sqlstore.Import(t.Context(), one, strings.NewReader(dump)); !errors.Is(err, dumpfile.ErrNotEmpty) {
		t.Errorf("a second import: got error %v, want %v", err, dumpfile.ErrNotEmpty)
	}
}

// dumpRefused imports what cannot be imported into PostgreSQL, where nothing of it may stay.
func dumpRefused(t *testing.T, cluster *pgtest.Cluster) {
	from := fresh(t)
	fill(t, from, pages)
	dump := export(t, from)
	into := openPostgres(t, sqlstore.PostgresOptions{URL: schema(t, cluster, t.Name())})
	empty := export(t, into)
	for n, broken := range []string{
		"", dump[:len(dump)/2], strings.Replace(dump, "s3cret", "s4cret", 1), dump + "x", strings.Replace(dump, `"format":1`, `"format":2`, 1),
	} {
		if _, err := sqlstore.Import(t.Context(), into, strings.NewReader(broken)); !errors.Is(err, dumpfile.ErrRefused) {
			t.Errorf("broken dump %d: got error %v, want %v", n, err, dumpfile.ErrRefused)
		}
		if export(t, into) != empty {
			t.Fatalf("broken dump %d left something", n)
		}
	}
	// A server that starts meanwhile: one of the two gives way.
	r := &interruption{r: strings.NewReader(dump), do: func() {
		if err := put(t.Context(), into, "secret"); err != nil {
			t.Error(err)
		}
	}}
	if _, err := sqlstore.Import(t.Context(), into, r); err == nil {
		t.Error("a state was imported over what a server had written meanwhile")
	}
	if got := export(t, into); strings.Count(got, "\n") != strings.Count(empty, "\n")+1 {
		t.Errorf("beside the server's row there is more:\n%.2000s", got)
	}
}

// interruption does something when half of a dump is read.
type interruption struct {
	r  *strings.Reader
	do func()
}

func (i *interruption) Read(b []byte) (int, error) {
	if i.do != nil && i.r.Len() < int(i.r.Size())/2 {
		i.do()
		i.do = nil
	}
	return i.r.Read(b)
}
