package wire_test

import (
	"net/http"
	"strings"
	"testing"
)

// forEachOperation runs check as a parallel subtest for every operation that keep accepts.
func forEachOperation(t *testing.T, keep func(operation) bool, check func(*testing.T, operation)) {
	t.Helper()
	t.Parallel()
	for _, op := range operations() {
		if keep(op) {
			t.Run(op.name, func(t *testing.T) {
				t.Parallel()
				check(t, op)
			})
		}
	}
}

func all(operation) bool               { return true }
func takesJSON(op operation) bool      { return op.json && !op.bareMap }
func takesID(op operation) bool        { return op.kind != noID }
func takesJSONAndID(op operation) bool { return takesJSON(op) && takesID(op) }
func ofTheCatalog(op operation) bool   { return !op.engine }
func takesNoJSON(op operation) bool    { return !op.json && !op.arrow && op.method == post }
func absent(op operation) []string     { return op.absentID() }
func (op operation) absentOrEngine() int {
	if op.engine {
		return unsupported
	}
	return op.absentCode()
}

// answers fails the test unless the answer has exactly this code, or succeeded where success is wanted.
func (a answer) answers(t *testing.T, code int) {
	t.Helper()
	if code == success {
		a.ok(t)
		return
	}
	a.fails(t, code)
}

// TestAbsentObject: a missing namespace is reported before a missing table, by every operation of the catalog.
func TestAbsentObject(t *testing.T) {
	forEachOperation(t, ofTheCatalog, func(t *testing.T, op operation) {
		suite.send(t, op.name, absent(op), op.sample).answers(t, op.absentCode())
	})
}

// TestAbsentTable: in a namespace that exists, a missing table is code 4.
func TestAbsentTable(t *testing.T) {
	namespaces := map[string]bool{"RegisterTable": true, "DeclareTable": true}
	keep := func(op operation) bool { return op.kind == tableID && !op.engine && !namespaces[op.name] }
	forEachOperation(t, keep, func(t *testing.T, op operation) {
		id := child(newNamespace(t), "t")
		mentions(t, suite.send(t, op.name, id, op.sample).fails(t, tableNotFound), id[0], "t")
	})
}

// TestErrorShape: an error is one flat JSON object with an integer code, and says which occurrence it was.
func TestErrorShape(t *testing.T) {
	forEachOperation(t, takesID, func(t *testing.T, op operation) {
		a := suite.send(t, op.name, absent(op), op.sample)
		a.words(t)
		if got, _ := decode(t, a.body)["instance"].(string); got == "" {
			t.Errorf("%s\n got %s\nwithout an instance", a.call, a)
		}
	})
}

// TestSlashes: a trailing slash and a doubled leading slash change nothing and are never answered with a redirect
// (client contract, facts 1 and 88).
func TestSlashes(t *testing.T) {
	forEachOperation(t, all, func(t *testing.T, op operation) {
		id := absent(op)
		plain := suite.send(t, op.name, id, op.sample)
		p := op.pathFor(id)
		for _, spelled := range []string{p + "/", "/" + p, "/" + p + "/"} {
			got := suite.send(t, op.name, id, op.sample, path(spelled))
			if got.status != plain.status || got.code() != plain.code() {
				t.Errorf("%s\n got %s\nwant %s as without the extra slash", got.call, got, plain)
			}
		}
	})
}

// TestWrongMethod: 405 as a JSON error that says in Allow what would be right.
func TestWrongMethod(t *testing.T) {
	alsoGET := map[string]bool{"CountTableRows": true, "ListTableTags": true}
	forEachOperation(t, all, func(t *testing.T, op operation) {
		methods := []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, "BREW"}
		if op.method == get {
			methods = append(methods, post)
		} else if !alsoGET[op.name] {
			methods = append(methods, get, http.MethodHead)
		}
		for _, m := range methods {
			a := suite.send(t, op.name, absent(op), nil, method(m), noBody())
			if a.status != http.StatusMethodNotAllowed || !strings.Contains(a.header.Get("Allow"), op.method) {
				t.Errorf("%s\n got %s with Allow %q\nwant 405 and %s in Allow", a.call, a, a.header.Get("Allow"), op.method)
				continue
			}
			if m != http.MethodHead {
				a.words(t)
			}
		}
	})
}

// TestEmptyBody: no body, an empty one and null mean {}, with and without a Content-Type (client contract, facts 6 and 7).
func TestEmptyBody(t *testing.T) {
	forEachOperation(t, takesJSON, func(t *testing.T, op operation) {
		id := absent(op)
		want := suite.send(t, op.name, id, nil)
		spellings := map[string][]option{
			"no body":                {noBody()},
			"no body but a type":     {noBody(), header("Content-Type", "application/json")},
			"null":                   {rawBody("null")},
			"null without a type":    {rawBody("null"), header("Content-Type", "")},
			"{} without a type":      {rawBody("{}"), header("Content-Type", "")},
			"{} with a charset":      {rawBody("{}"), header("Content-Type", "application/json; charset=utf-8")},
			"spaces":                 {rawBody(" \n\t")},
			"{} with spaces":         {rawBody(" {} \n")},
			"null members":           {rawBody(`{"id":null,"identity":null,"context":null}`)},
			"unknown members":        {rawBody(`{"no_such_member":{"deep":[1,2,{"x":null}]},"другое":1}`)},
			"identity and a context": {rawBody(`{"identity":{"api_key":"k","auth_token":"a"},"context":{"a":"b"}}`)},
		}
		for name, opts := range spellings {
			got := suite.send(t, op.name, id, nil, opts...)
			if got.status != want.status || got.code() != want.code() {
				t.Errorf("%s: %s\n got %s\nwant %s as for {}", name, got.call, got, want)
			}
		}
	})
}

// TestIgnoredBody: operations without a body of their own take and ignore one (client contract, fact 7).
func TestIgnoredBody(t *testing.T) {
	forEachOperation(t, takesNoJSON, func(t *testing.T, op operation) {
		for _, body := range []string{"null", "{}"} {
			suite.send(t, op.name, absent(op), nil, rawBody(body), header("Content-Type", "application/json")).answers(t, op.absentOrEngine())
		}
	})
}

// TestMalformedBody: what is not one JSON object is refused, and so are members of a wrong type.
func TestMalformedBody(t *testing.T) {
	forEachOperation(t, takesJSON, func(t *testing.T, op operation) {
		for _, body := range []string{"{", `{"id":`, "[]", `"text"`, "7", "true", "{}{}", "{} trailing", "\x00", "{\"a\":\"\xff\xfe\"}", "<html>",
			strings.Repeat("[", 100000), `{"a":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + "}"} {
			suite.send(t, op.name, absent(op), nil, rawBody(body)).fails(t, invalidInput)
		}
		general := obj{"identity": "me", "context": list{}}
		if takesID(op) {
			general["id"] = "joined"
		}
		for _, members := range []obj{general, op.wrong} {
			for name, value := range members {
				body := with(op.sample, obj{name: value})
				mentions(t, suite.send(t, op.name, absent(op), body).fails(t, invalidInput), name)
			}
		}
		suite.send(t, op.name, absent(op), with(op.sample, obj{"context": obj{"a": 1}})).fails(t, invalidInput)
	})
}

// TestExplicitNulls: null for an optional member means that it is absent.
func TestExplicitNulls(t *testing.T) {
	required := map[string]bool{"location": true, "new_table_name": true, "version": true, "manifest_path": true, "ranges": true,
		"entries": true, "operations": true, "actions": true, "tag": true}
	keep := func(op operation) bool { return takesJSON(op) && !op.engine }
	forEachOperation(t, keep, func(t *testing.T, op operation) {
		body := string(marshal(t, with(op.sample, obj{"identity": nil})))
		for name := range op.wrong {
			if !required[name] {
				body = strings.Replace(body, "{", `{"`+name+`":null,`, 1)
			}
		}
		body = strings.Replace(body, ",}", "}", 1)
		suite.send(t, op.name, absent(op), nil, rawBody(body)).answers(t, op.absentCode())
	})
}

// TestBodyID: the id may stand in the path alone or in both places; where both are there they must agree. An id that one client
// sends as a single joined element agrees with its parts (client contract, fact 111).
func TestBodyID(t *testing.T) {
	forEachOperation(t, takesJSONAndID, func(t *testing.T, op operation) {
		id := absent(op)
		joined := strings.Join(id, "$")
		want := suite.send(t, op.name, id, op.sample)
		same := map[string]obj{"none": {"id": nil}, "same": {"id": id}, "joined": {"id": list{joined}}}
		for name, member := range same {
			body := with(op.sample, member)
			got := suite.send(t, op.name, id, nil, rawBody(string(marshal(t, body))))
			if got.status != want.status || got.code() != want.code() {
				t.Errorf("%s: %s\n got %s\nwant %s", name, got.call, got, want)
			}
		}
		for _, other := range []any{list{"other"}, list{}, child(id, "deeper"), list{""}} {
			suite.send(t, op.name, id, with(op.sample, obj{"id": other})).fails(t, invalidInput)
		}
		for _, malformed := range []any{list{1}, list{nil}, list{list{"a"}}} {
			suite.send(t, op.name, id, with(op.sample, obj{"id": malformed})).fails(t, invalidInput)
		}
	})
}

// TestRootIsNoTable: nothing but a namespace can stand at the root.
func TestRootIsNoTable(t *testing.T) {
	keep := func(op operation) bool { return op.kind == tableID && !op.engine }
	forEachOperation(t, keep, func(t *testing.T, op operation) {
		suite.send(t, op.name, []string{}, op.sample).fails(t, invalidInput)
	})
}
