package wire_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReadersNeverSeeHalf: while batches move five tables together, whoever reads them one after the other never finds a later
// one behind an earlier one, for that would be half a transaction (C7).
func TestReadersNeverSeeHalf(t *testing.T) {
	t.Parallel()
	tables := newTables(t, 5)
	const last = 12
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				seen := int64(0)
				for i, tb := range tables {
					head := suite.send(t, "ListTableVersions", tb.id, nil, andQuery("limit=1&descending=true"))
					if head.code() != success {
						t.Errorf("%s\n got %s", head.call, head)
						return
					}
					now := int64(0)
					if n := numbers(t, head.ok(t)); len(n) > 0 {
						now = n[0]
					}
					if now < seen {
						t.Errorf("table %d is at version %d after an earlier one was seen at %d", i, now, seen)
					}
					seen = max(seen, now)
				}
			}
		})
	}
	for v := int64(1); v <= last; v++ {
		entries := list{}
		for i := range tables {
			entries = append(entries, tables[(i+int(v))%len(tables)].entry(t, v))
		}
		batch(t, entries).ok(t)
	}
	close(done)
	readers.Wait()
	allAt(t, tables, last)
}

// TestRenameHasNoMoment with zero or two names.
func TestRenameHasNoMoment(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	names := []string{"a", "b"}
	declare(t, child(ns, names[0]))
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			a := suite.send(t, "ListTables", ns, nil)
			if a.code() != success || len(a.ok(t).items(t, "tables")) != 1 {
				t.Errorf("%s\n got %s\nwant exactly one name", a.call, a)
				return
			}
		}
	})
	for i := range 40 {
		suite.send(t, "RenameTable", child(ns, names[i%2]), obj{"new_table_name": names[(i+1)%2]}).ok(t)
	}
	close(done)
	reader.Wait()
}

// TestHangUp: a client that sends a commit and hangs up leaves either all of it or none, and the same request again succeeds.
func TestHangUp(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(suite.base)
	if err != nil {
		t.Fatal(err)
	}
	tables := newTables(t, 4)
	for v := int64(1); v <= 10; v++ {
		entries := list{}
		for _, tb := range tables {
			entries = append(entries, tb.entry(t, v))
		}
		body := marshal(t, obj{"entries": entries})
		conn, err := net.DialTimeout("tcp", u.Host, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		head := "POST /v1/table/version/batch-create HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
		if _, err := io.WriteString(conn, fmt.Sprintf(head, u.Host, len(body))+string(body)); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		first := batch(t, entries).ok(t)
		if diff := cmp.Diff(first, batch(t, entries).ok(t)); diff != "" {
			t.Errorf("version %d (-first +second):\n%s", v, diff)
		}
		allAt(t, tables, v)
	}
}

// TestDeclareDropRace: names that come and go under many hands never show an internal error, and end in a state that works.
func TestDeclareDropRace(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	id := child(ns, "t")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 10 {
				for op, allowed := range map[string][]int{"DeclareTable": {success, tableExists}, "DropTable": {success, tableNotFound}, "DeregisterTable": {success, tableNotFound}} {
					a := suite.send(t, op, id, nil)
					found := false
					for _, code := range allowed {
						found = found || a.code() == code
					}
					if !found {
						t.Errorf("%s\n got %s\nwant one of the codes %v", a.call, a, allowed)
					}
				}
			}
		})
	}
	group.Wait()
	if a := suite.send(t, "DropTable", id, nil); a.code() != success {
		a.fails(t, tableNotFound)
	}
	declare(t, id).commit(t, 1, 2)
}
