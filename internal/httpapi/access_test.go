package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
)

// hush is part of every secret in these tests.
const hush = "hush-hush"

// vendor makes keys that say for which directory they are, or fails.
type vendor struct {
	fails error
	asked chan lance.Location // buffered
}

func newVendor(fails error) *vendor {
	return &vendor{fails: fails, asked: make(chan lance.Location, 100)}
}

func (v *vendor) Vend(_ context.Context, dir lance.Location, _ access.Grant) (access.Keys, error) {
	v.asked <- dir
	if v.fails != nil {
		return access.Keys{}, v.fails
	}
	return access.Keys{Values: map[string]string{"aws_secret_access_key": hush + " for " + dir.String()}, Expires: time.Now().Add(time.Hour)}, nil
}

// giving returns a lake whose clients are given what the mode gives.
func giving(t *testing.T, mode access.Mode, v *vendor) *lake {
	t.Helper()
	l := newLake(t)
	var err error
	l.access, err = access.New(access.Options{
		Mode: mode, Vendor: v, Settings: map[string]string{"aws_region": "here"},
		Own: func(context.Context) (access.Keys, error) {
			return access.Keys{Values: map[string]string{"aws_secret_access_key": hush}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// optionsOf returns the storage options of an answer, nil where it has none.
func optionsOf(t *testing.T, r reply) map[string]string {
	t.Helper()
	var answer struct {
		Options map[string]string `json:"storage_options"`
	}
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
	return answer.Options
}

// TestStorageOptions: declare and describe give what the root's mode says, keys unless the client wants none, and then forbid every
// cache to keep the answer.
func TestStorageOptions(t *testing.T) {
	t.Parallel()
	settings := []string{"aws_region"}
	static := []string{"aws_region", "aws_secret_access_key"}
	vended := []string{"aws_region", "aws_secret_access_key", "expires_at_millis", "refresh_offset_millis"}
	for mode, want := range map[access.Mode]struct{ with, without []string }{
		access.None: {}, access.Client: {settings, settings}, access.Static: {static, settings}, access.Vend: {vended, settings},
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			s := giving(t, mode, newVendor(nil)).serve(t)
			for i, body := range []string{`{}`, `{"vend_credentials":true}`, `{"vend_credentials":null}`, `{"vend_credentials":false}`} {
				names := want.with
				if strings.Contains(body, "false") {
					names = want.without
				}
				for _, path := range []string{"declare", "describe"} {
					r := s.send(t, call{path: fmt.Sprintf("/v1/table/t%d/%s", i, path), body: body})
					if diff := cmp.Diff(names, slices.Sorted(maps.Keys(optionsOf(t, r)))); diff != "" || r.status != 200 {
						t.Errorf("%s %s: %d (-want +got):\n%s", path, body, r.status, diff)
					}
					control := ""
					if names != nil {
						control = "no-store, private"
					}
					if got := r.header.Get("Cache-Control"); got != control {
						t.Errorf("%s %s: Cache-Control %q, want %q", path, body, got, control)
					}
				}
			}
		})
	}
}

// TestNotKept: an answer that is kept for repeating holds no keys; whoever repeats the request is given some, as long as the table is
// there. No secret is in the state or in the log.
func TestNotKept(t *testing.T) {
	t.Parallel()
	l := giving(t, access.Vend, newVendor(nil))
	s := l.serve(t)
	declare := call{path: "/v1/table/t/declare", body: `{}`}.key("k")
	first := s.send(t, declare)
	if !strings.Contains(first.body, hush) {
		t.Fatalf("%s, want keys", first.body)
	}
	for when, s := range map[string]*server{"again": s, "after a restart": l.serve(t)} {
		r := s.send(t, declare)
		same(t, when, r, first) // with the same keys: they are young
		if r.header.Get("Cache-Control") == "" {
			t.Errorf("%s: %v, want that no cache keeps it", when, r.header)
		}
	}
	s.send(t, call{path: "/v1/table/t/describe", body: `{}`}.key("k2"))
	s.send(t, call{path: "/v1/table/t/drop"})
	if gone := s.send(t, declare); gone.status != 200 || strings.Contains(gone.body, hush) {
		t.Errorf("repeated when the table is gone: %d %s, want no keys", gone.status, gone.body)
	}
	if log := s.log.String(); strings.Contains(log, hush) {
		t.Errorf("the log holds a secret: %s", log)
	}
	for _, name := range []string{"catalog.db", "catalog.db-wal"} {
		text, err := os.ReadFile(filepath.Join(l.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), hush) {
			t.Errorf("%s holds a secret", name)
		}
		if name == "catalog.db-wal" && !strings.Contains(string(text), "memory://lake/tables/") {
			t.Errorf("%s does not hold the table: the test looks in the wrong place", name)
		}
	}
}

// TestNoKeys: what providers answer is told as what it is, never as "not found", with the reason only in the log. A declaration that has
// taken effect succeeds all the same, without keys.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fails  error
		status int
		code   api.Code
		says   string // to the client
	}{
		{access.ErrUnavailable, 503, api.CodeServiceUnavailable, "try again"},
		{access.ErrRefused, 500, api.CodeInternal, "refuses this server"},
		{access.ErrUnfit, 409, api.CodeInvalidTableState, "too long by half"},
	} {
		t.Run(c.fails.Error(), func(t *testing.T) {
			t.Parallel()
			s := giving(t, access.Vend, newVendor(fmt.Errorf("%w: role of Eve is too long by half", c.fails))).serve(t)
			r := s.send(t, call{path: "/v1/table/t/declare", body: `{}`})
			if diff := cmp.Diff(map[string]string{"aws_region": "here"}, optionsOf(t, r)); diff != "" || r.status != 200 {
				t.Errorf("declare: %d (-want +got):\n%s", r.status, diff)
			}
			r = s.send(t, call{path: "/v1/table/t/describe", body: `{}`})
			r.fails(t, c.status, c.code, c.says)
			if c.code != api.CodeInvalidTableState && strings.Contains(r.body, "Eve") {
				t.Errorf("describe tells %s, which is for the log", r.body)
			}
			if line := s.log.of(t, r.header.Get("X-Request-Id")); !strings.Contains(fmt.Sprint(line["error"]), "Eve") {
				t.Errorf("the log has %v, want the reason", line)
			}
			if r := s.send(t, call{path: "/v1/table/t/describe", body: `{"vend_credentials":false}`}); r.status != 200 {
				t.Errorf("describe without keys: %d %s", r.status, r.body)
			}
			want := 200
			if c.code == api.CodeInvalidTableState {
				want = 400 // better now than when the table is written
			}
			if r := s.send(t, call{path: "/v1/table/u/declare", body: toJSON(t, map[string]any{"location": s.lake.root.String() + "/there"})}); r.status != want {
				t.Errorf("declare at a location: %d %s, want %d", r.status, r.body, want)
			}
		})
	}
}

// TestNobodyAsks: keys are not made for tables that are not there, nor for who does not want them.
func TestNobodyAsks(t *testing.T) {
	t.Parallel()
	v := newVendor(nil)
	s := giving(t, access.Vend, v).serve(t)
	s.send(t, call{path: "/v1/table/t/describe", body: `{}`})
	s.must(t, "/v1/table/t/declare", map[string]any{"vend_credentials": false})
	s.send(t, call{path: "/v1/table/t/declare", body: `{}`})
	s.send(t, call{path: "/v1/table/t/exists", body: `{}`})
	s.table(t, "open", 1)
	<-v.asked // by its declaration
	if r := s.send(t, call{path: "/v1/table/open/describe/"}.with("x-lancedb-database", "db")); r.status != 200 {
		t.Errorf("described by LanceDB's SDK: %d %s", r.status, r.body)
	}
	select {
	case dir := <-v.asked:
		t.Errorf("keys were made for %s", dir)
	default:
	}
}
