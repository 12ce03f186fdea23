package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// key returns the call with an Idempotency-Key.
func (c call) key(key string) call { return c.with("Idempotency-Key", key) }

// keyedCase prepares what a request needs and returns the request. It is one that answers otherwise when it is carried out twice,
// wherever there is such a one.
type keyedCase func(t *testing.T, s *server) call

// keyedCases has a case for every operation that changes something and is performed by the catalog.
func keyedCases() map[string]keyedCase {
	fixed := func(path, body string) keyedCase {
		return func(t *testing.T, s *server) call { return call{path: path, body: body} }
	}
	declared := func(path, body string) keyedCase {
		return func(t *testing.T, s *server) call { s.declare(t, "t"); return call{path: path, body: body} }
	}
	filled := func(path, body string) keyedCase {
		return func(t *testing.T, s *server) call { s.table(t, "t", 3); return call{path: path, body: body} }
	}
	tagged := func(path, body string) keyedCase {
		return func(t *testing.T, s *server) call {
			s.table(t, "t", 3)
			s.must(t, "/v1/table/t/tags/create", map[string]any{"tag": "old", "version": 1})
			return call{path: path, body: body}
		}
	}
	return map[string]keyedCase{
		"CreateNamespace":          fixed("/v1/namespace/n/create", `{}`),
		"DropNamespace":            namespaceToDrop,
		"RegisterTable":            tableToRegister,
		"DropTable":                declared("/v1/table/t/drop", ``),
		"DeregisterTable":          declared("/v1/table/t/deregister", `{}`),
		"RenameTable":              declared("/v1/table/t/rename", `{"new_table_name":"u"}`),
		"DeclareTable":             fixed("/v1/table/t/declare", `{}`),
		"CreateTableVersion":       versionToCreate,
		"BatchCreateTableVersions": batchToCreate,
		"BatchCommitTables":        fixed("/v1/table/batch-commit", `{"operations":[{"declare_table":{"id":["t"]}}]}`),
		"BatchDeleteTableVersions": filled("/v1/table/t/version/delete", `{"ranges":[{"start_version":1,"end_version":3}]}`),
		"CreateTableTag":           filled("/v1/table/t/tags/create", `{"tag":"new","version":2}`),
		"UpdateTableTag":           tagged("/v1/table/t/tags/update", `{"tag":"old","version":2}`),
		"DeleteTableTag":           tagged("/v1/table/t/tags/delete", `{"tag":"old"}`),
		"AlterTransaction":         transactionToAlter,
	}
}

func namespaceToDrop(t *testing.T, s *server) call {
	s.must(t, "/v1/namespace/n/create", map[string]any{})
	return call{path: "/v1/namespace/n/drop", body: `{}`}
}

func tableToRegister(t *testing.T, s *server) call {
	loc, err := lance.ParseLocation(s.lake.root.String() + "/elsewhere/t.lance")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.lake.objects.PutIfAbsent(t.Context(), lance.ManifestKey(loc.Key(), lance.Main, 1, lance.SchemeV2),
		lancetest.Manifest(lancetest.Spec{Version: 1})); err != nil {
		t.Fatal(err)
	}
	return call{path: "/v1/table/t/register", body: toJSON(t, map[string]any{"location": loc.String()})}
}

func versionToCreate(t *testing.T, s *server) call {
	return call{path: "/v1/table/t/version/create", body: toJSON(t, s.stage(t, s.declare(t, "t"), 1))}
}

func batchToCreate(t *testing.T, s *server) call {
	entries := []api.CreateTableVersionEntry{{ID: []string{"t"}, StagedVersion: s.stage(t, s.declare(t, "t"), 1)},
		{ID: []string{"u"}, StagedVersion: s.stage(t, s.declare(t, "u"), 1)}}
	return call{path: "/v1/table/version/batch-create", body: toJSON(t, map[string]any{"entries": entries})}
}

func transactionToAlter(t *testing.T, s *server) call {
	batch := batchToCreate(t, s)
	_, rest, _ := strings.Cut(s.send(t, batch).body, `"transaction_id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return call{path: "/v1/transaction/" + id + "/alter", body: `{"actions":[{"setPropertyAction":{"key":"k","value":"v","mode":"Fail"}}]}`}
}

// TestKeyRepeats: the same request with the same key is answered as the first time, also by the server's successor, and not carried out
// again, whatever happened in between. That holds for every operation that changes something.
func TestKeyRepeats(t *testing.T) {
	t.Parallel()
	cases := keyedCases()
	e := newEdge(t)
	for _, op := range api.Operations() {
		if readOnly(op) || op.Body == api.ArrowBody {
			continue
		}
		if e.send(t, op); e.engine != "" {
			continue // not the catalog's
		}
		prepare, ok := cases[op.Name]
		if !ok {
			t.Errorf("%s changes something and has no case here", op.Name)
			continue
		}
		t.Run(op.Name, func(t *testing.T) {
			t.Parallel()
			l := newLake(t)
			s := l.serve(t)
			c := prepare(t, s).key("k")
			first := s.send(t, c)
			if first.status != op.Success {
				t.Fatalf("%d %s, want success", first.status, first.body)
			}
			calls := len(s.objects.Calls())
			same(t, "again", s.send(t, c), first)
			if n := len(s.objects.Calls()); n != calls {
				t.Errorf("the repeated request touched storage %d times: it was carried out again", n-calls)
			}
			same(t, "after a restart", l.serve(t).send(t, c), first)
			s.send(t, call{path: "/v1/table/t/drop"})
			same(t, "without the table", s.send(t, c), first)
		})
	}
}

func same(t *testing.T, when string, got, want reply) {
	t.Helper()
	if got.status != want.status || got.body != want.body || got.header.Get("Content-Type") != want.header.Get("Content-Type") {
		t.Errorf("%s:\n got %d %s\nwant %d %s", when, got.status, got.body, want.status, want.body)
	}
}

// readOnly tells the operations that change nothing, by their names.
func readOnly(op api.Operation) bool {
	for _, verb := range []string{"List", "Describe", "Get", "Query", "Count", "Explain", "Analyze"} {
		if strings.HasPrefix(op.Name, verb) {
			return true
		}
	}
	return strings.HasSuffix(op.Name, "Exists")
}

// TestKeyRepeatsFailures: a failure of the caller's is repeated to the letter, although the request would succeed by now.
func TestKeyRepeatsFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]call{
		"404": {path: "/v1/table/t/drop"},
		"409": {path: "/v1/namespace/n/create", body: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLake(t)
			s := l.serve(t)
			s.must(t, "/v1/namespace/n/create", map[string]any{})
			c = c.key("k")
			first := s.send(t, c)
			if first.status < 400 || first.status > 499 {
				t.Fatalf("%d %s, want a failure", first.status, first.body)
			}
			s.declare(t, "t")
			s.must(t, "/v1/namespace/n/drop", map[string]any{})
			same(t, "again", s.send(t, c), first)
			same(t, "after a restart", l.serve(t).send(t, c), first)
			if r := s.send(t, c.key("another")); r.status != http.StatusOK {
				t.Errorf("with another key: %d %s, want success", r.status, r.body)
			}
		})
	}
}

// TestKeyOfAnotherRequest: a key that was used for one request is refused for any other, which is not carried out.
func TestKeyOfAnotherRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	first := call{path: "/v1/namespace/n/create", body: `{"properties":{"a":"1"}}`}.key("k")
	if r := s.send(t, first); r.status != http.StatusOK {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for name, c := range map[string]call{
		"body":      {path: first.path, body: `{"properties":{"a":"2"}}`},
		"path":      {path: "/v1/namespace/m/create", body: first.body},
		"query":     {path: first.path + "?delimiter=.", body: first.body},
		"operation": {path: "/v1/namespace/n/drop", body: first.body},
	} {
		t.Run(name, func(t *testing.T) {
			s.send(t, c.key("k")).fails(t, http.StatusBadRequest, api.CodeInvalidInput, "Idempotency-Key", "another request")
		})
	}
	if r := s.send(t, call{path: "/v1/namespace/n/exists", body: `{}`}); r.status != http.StatusOK {
		t.Errorf("the namespace is gone: a refused request was carried out (%d %s)", r.status, r.body)
	}
	s.send(t, call{path: "/v1/namespace/m/exists", body: `{}`}).fails(t, http.StatusNotFound, api.CodeNamespaceNotFound)
}

// TestKeyOfAnotherPrincipal: callers do not share keys, however they say who they are.
func TestKeyOfAnotherPrincipal(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := call{path: "/v1/namespace/n/create", body: `{}`}.key("k")
	if r := s.send(t, c); r.status != http.StatusOK {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for name, other := range map[string]call{
		"api key": c.with("x-api-key", "one"), "another api key": c.with("x-api-key", "two"), "token": c.with("Authorization", "Bearer one"),
	} {
		r := s.send(t, other)
		r.fails(t, http.StatusConflict, api.CodeNamespaceAlreadyExists)
		same(t, name+" again", s.send(t, other), r)
	}
	inBody := call{path: c.path, body: `{"identity":{"api_key":"three"}}`}.key("k")
	s.send(t, inBody).fails(t, http.StatusConflict, api.CodeNamespaceAlreadyExists)
}

// TestKeyInParallel: of requests that arrive at once with one key, one is carried out, and all get its answer.
func TestKeyInParallel(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.table(t, "t", 1)
	c := call{path: "/v1/table/t/tags/create", body: `{"tag":"new","version":1}`}.key("k")
	put := objtest.Match{Op: objtest.OpPutIfAbsent, Key: func(key string) bool { return strings.Contains(key, "/_refs/tags/") }}
	gate := s.objects.Hold(put, objtest.Before)
	var answers []<-chan reply
	for range 8 {
		answers = append(answers, async(func() reply { return s.send(t, c) }))
	}
	within(t, "the tag's object", gate.Reached())
	gate.Release()
	first := within(t, "an answer", answers[0])
	if first.status != http.StatusOK {
		t.Errorf("%d %s, want success", first.status, first.body)
	}
	for _, a := range answers[1:] {
		same(t, "another of them", within(t, "an answer", a), first)
	}
	puts := 0
	for _, call := range s.objects.Calls() {
		if put.Op == call.Op && put.Key(call.Key) {
			puts++
		}
	}
	if puts != 1 {
		t.Errorf("the tag was written %d times, want once", puts)
	}
}

// TestKeyOnTwoServers: two servers on one state carry a request out once between them: who comes second finds the first one's
// answer in the transaction of its own effect, and repeats it.
func TestKeyOnTwoServers(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]keyedCase{
		"CreateNamespace": keyedCases()["CreateNamespace"], "BatchCreateTableVersions": batchToCreate, "DeclareTable": keyedCases()["DeclareTable"],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLake(t)
			one, two := l.serve(t), l.serve(t)
			c := prepare(t, one).key("k")
			var first reply
			two.state.beforeUpdate(func() error { first = one.send(t, c); return nil })
			second := two.send(t, c)
			if first.status != http.StatusOK {
				t.Fatalf("the first: %d %s", first.status, first.body)
			}
			same(t, "the second", second, first)
		})
	}
}

// TestKeyOfTheServersFailure: what the server could not do now is not on record: the same request may succeed.
func TestKeyOfTheServersFailure(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.table(t, "t", 1)
	c := call{path: "/v1/table/t/tags/create", body: `{"tag":"new","version":1}`}.key("k")
	s.objects.Fail(objtest.Match{Op: objtest.OpPutIfAbsent}, objtest.Before, nil)
	if r := s.send(t, c); r.status < 500 {
		t.Fatalf("%d %s, want a failure of the server", r.status, r.body)
	}
	if r := s.send(t, c); r.status != http.StatusOK {
		t.Errorf("again: %d %s, want success", r.status, r.body)
	}
	c = call{path: "/v1/namespace/n/create", body: `{}`}.key("l")
	s.state.beforeUpdate(func() error { return errors.New("the disk is on fire") })
	s.send(t, c).fails(t, http.StatusInternalServerError, api.CodeInternal)
	if r := s.send(t, c); r.status != http.StatusOK {
		t.Errorf("again: %d %s, want success", r.status, r.body)
	}
}

// TestKeyIsForgotten: after a day an answer is forgotten, and the key is free; not before.
func TestKeyIsForgotten(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	s := l.serve(t)
	c := call{path: "/v1/namespace/n/create", body: `{}`}.key("k")
	first := s.send(t, c)
	forget := func(age time.Duration) {
		t.Helper()
		l.ahead.Store(int64(age))
		if err := s.catalog.ForgetAnswers(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	forget(catalog.AnswersKept - time.Minute)
	same(t, "within the day", s.send(t, c), first)
	forget(catalog.AnswersKept + time.Minute)
	s.send(t, c).fails(t, http.StatusConflict, api.CodeNamespaceAlreadyExists)
}

// TestKeyRefused: a key that is too long is refused before anything is done. One on a request that changes nothing is no key.
func TestKeyRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := call{path: "/v1/namespace/n/create", body: `{}`}
	s.send(t, c.key(strings.Repeat("k", 256))).fails(t, http.StatusBadRequest, api.CodeInvalidInput, "Idempotency-Key", "256", "255")
	look := call{path: "/v1/namespace/n/exists", body: `{}`}.key("k")
	s.send(t, look).fails(t, http.StatusNotFound, api.CodeNamespaceNotFound)
	if r := s.send(t, c.key(strings.Repeat("k", 255))); r.status != http.StatusOK {
		t.Errorf("a key of 255 bytes: %d %s", r.status, r.body)
	}
	if r := s.send(t, look); r.status != http.StatusOK {
		t.Errorf("a look with the same key: %d %s, want what is true now", r.status, r.body)
	}
}

// TestKeyGivenUp: who waits for another request with its key and goes away leaves nothing behind.
func TestKeyGivenUp(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.table(t, "t", 1)
	c := call{path: "/v1/table/t/tags/create", body: `{"tag":"new","version":1}`}.key("k")
	gate := s.objects.Hold(objtest.Match{Op: objtest.OpPutIfAbsent}, objtest.Before)
	first := async(func() reply { return s.send(t, c) })
	within(t, "the tag's object", gate.Reached())
	ctx, cancel := context.WithCancel(context.Background())
	gone := async(func() error {
		_, err := s.try(http.MethodPost, call{path: c.path, body: c.body, header: map[string]string{"Idempotency-Key": "k", "X-Request-Id": "gone"}, ctx: ctx})
		return err
	})
	cancel()
	if err := within(t, "the one who goes away", gone); err == nil {
		t.Error("it was answered, want that it went away")
	}
	gate.Release()
	if r := within(t, "the first", first); r.status != http.StatusOK {
		t.Errorf("the first: %d %s", r.status, r.body)
	}
	if r := s.send(t, c); r.status != http.StatusOK {
		t.Errorf("later: %d %s", r.status, r.body)
	}
}
