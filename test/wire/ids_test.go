package wire_test

import (
	"net/url"
	"strings"
	"testing"
)

// at makes an option that addresses an operation by a raw id segment and a delimiter given raw; "" leaves the parameter away.
func at(opPath, segment, delimiter string) option {
	return func(c *call) {
		c.path = strings.ReplaceAll(opPath, "{id}", segment)
		c.query = ""
		if delimiter != "" {
			c.query = "delimiter=" + delimiter
		}
	}
}

// describeAt describes a table by a raw segment, with no id in the body.
func describeAt(t *testing.T, segment, delimiter string) answer {
	t.Helper()
	return suite.send(t, "DescribeTable", nil, nil, at("/v1/table/{id}/describe", segment, delimiter), rawBody("{}"))
}

// namespaceAt asks whether a namespace exists, by a raw segment.
func namespaceAt(t *testing.T, segment, delimiter string) answer {
	t.Helper()
	return suite.send(t, "NamespaceExists", nil, nil, at("/v1/namespace/{id}/exists", segment, delimiter), rawBody("{}"))
}

// listAt lists namespaces by a raw segment.
func listAt(t *testing.T, segment, delimiter string) answer {
	t.Helper()
	return suite.send(t, "ListNamespaces", nil, nil, at("/v1/namespace/{id}/list", segment, delimiter))
}

// TestDelimiters: the delimiter is the request's own and any string; "$" where none is given. It acts on the path only.
func TestDelimiters(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	ns := tb.id[0]
	for _, delimiter := range []string{"", "$", ".", "/", "::", "#", "__delim__", "\x1f", "é", "+", "%"} {
		t.Run("delimiter "+url.QueryEscape(delimiter), func(t *testing.T) {
			t.Parallel()
			d := delimiter
			if d == "" {
				d = "$"
			}
			segment := ns + url.PathEscape(d) + "t"
			if d == "+" {
				segment = ns + "%2Bt" // a bare plus in a path is a space (client contract, fact 3)
			}
			got := describeAt(t, segment, url.QueryEscape(delimiter)).ok(t)
			if got.str(t, "location") != tb.location {
				t.Errorf("location = %v, want %v", got["location"], tb.location)
			}
		})
	}
	t.Run("empty delimiter", func(t *testing.T) {
		t.Parallel()
		a := suite.send(t, "DescribeTable", nil, nil, path("/v1/table/"+ns+"%24t/describe"), query("delimiter="), rawBody("{}"))
		if a.code() != invalidInput && a.code() != namespaceNotFound && a.code() != tableNotFound {
			t.Errorf("%s\n got %s\nwant a refusal or the name taken as one component", a.call, a)
		}
	})
	t.Run("$ is the same bare and encoded", func(t *testing.T) {
		t.Parallel()
		describeAt(t, ns+"$t", "%24").ok(t)
		describeAt(t, ns+"%24t", "$").ok(t)
		describeAt(t, ns+"%24t", "").ok(t)
	})
	t.Run("another delimiter's id is one name", func(t *testing.T) {
		t.Parallel()
		mentions(t, describeAt(t, ns+".t", "%24").failsWith(t, tableNotFound, namespaceNotFound), ns+".t")
	})
}

// TestRootSpellings: the root is the bare delimiter, and a list without an id.
func TestRootSpellings(t *testing.T) {
	t.Parallel()
	for _, form := range []struct{ segment, delimiter string }{
		{"$", ""}, {"%24", ""}, {"$", "%24"}, {"%24", "%24"}, {".", "."}, {"%2E", "."}, {"%2F", "%2F"}, {"%3A%3A", "::"}, {"%1F", "%1F"},
	} {
		t.Run(form.segment+" "+form.delimiter, func(t *testing.T) {
			t.Parallel()
			namespaceAt(t, form.segment, form.delimiter).empty(t)
			listAt(t, form.segment, form.delimiter).ok(t)
		})
	}
	t.Run("collapsed dot", func(t *testing.T) {
		t.Parallel()
		// A client's URL parser turns /./ into / before it sends (client contract, fact 4).
		suite.send(t, "ListNamespaces", nil, nil, path("/v1/namespace/list"), query("delimiter=.")).ok(t)
	})
	for _, segment := range []string{"..", "%2E%2E", "%2e%2e"} {
		t.Run("refused "+segment, func(t *testing.T) {
			t.Parallel()
			listAt(t, segment, "%24").fails(t, invalidInput)
			listAt(t, segment, ".").fails(t, invalidInput)
		})
	}
	t.Run("empty segment", func(t *testing.T) {
		t.Parallel()
		a := suite.do(t, call{method: get, path: "/v1/namespace//list", query: defaultDelimiterQuery})
		if a.status/100 == 3 || a.status/100 == 2 {
			t.Fatalf("%s\n got %s\nwant a JSON refusal", a.call, a)
		}
		a.words(t)
	})
}

// TestEmptyComponents: a doubled, leading or trailing delimiter names nothing; it must not be dropped silently.
func TestEmptyComponents(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	ns := tb.id[0]
	for _, segment := range []string{ns + "$$t", "$" + ns + "$t", ns + "$t$", "$$", "$$$"} {
		t.Run(strings.ReplaceAll(segment, ns, "ns"), func(t *testing.T) {
			t.Parallel()
			describeAt(t, segment, "%24").fails(t, invalidInput)
		})
	}
}

// TestNamesInPaths: every name that the grammar allows survives the way through path, body and list. One decode exactly.
func TestNamesInPaths(t *testing.T) {
	t.Parallel()
	names := []string{"sp ace", "pl+us", "50%25", "50%", "a%2Fb", "tilde~", "it's", "(x)", "a!b", "a*b", "a?b", "a#b", "a&b=c", "a;b", "a,b", "a:b",
		"quo\"te", "back\\slash", "ünï", "日本語", "🚀", "e\u0301", "CON", "version", "batch-commit", "list", strings.Repeat("n", 255)}
	for _, name := range names {
		t.Run(url.QueryEscape(name[:min(len(name), 24)]), func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			id := child(ns, name)
			tb := declare(t, id) // the id in the path as the Rust client encodes it, and in the body
			python := strings.ReplaceAll(url.QueryEscape(strings.Join(id, "$")), "+", "%20")
			got := suite.send(t, "DescribeTable", id, nil, path("/v1/table/"+python+"/describe")).ok(t)
			if got.str(t, "location") != tb.location {
				t.Errorf("location = %v, want %v", got["location"], tb.location)
			}
			tables := suite.send(t, "ListTables", ns, nil).ok(t).strings(t, "tables")
			if len(tables) != 1 || tables[0] != name {
				t.Errorf("list has %q, want %q", tables, name)
			}
			tb.commit(t, 1, 1)
		})
	}
}

// TestPlusIsASpace: in a path a bare plus can only be a space, for the client that sends it form-encodes.
func TestPlusIsASpace(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	spaced, plus := declare(t, child(ns, "a b")), declare(t, child(ns, "a+b"))
	for segment, want := range map[string]table{"a+b": spaced, "a%20b": spaced, "a%2Bb": plus, "a%2bb": plus} {
		got := describeAt(t, ns[0]+"%24"+segment, "%24").ok(t)
		if got.str(t, "location") != want.location {
			t.Errorf("%s finds %v, want %v", segment, got["location"], want.location)
		}
	}
}

// TestSingleDecode: a name that looks encoded is not decoded a second time.
func TestSingleDecode(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	tb := declare(t, child(ns, "50%25"))
	got := describeAt(t, ns[0]+"%2450%2525", "%24").ok(t)
	if got.str(t, "location") != tb.location {
		t.Errorf("location = %v, want %v", got["location"], tb.location)
	}
	describeAt(t, ns[0]+"%2450%25", "%24").fails(t, tableNotFound)
	dollar := child(ns, "a%24b")
	declare(t, dollar)
	describeAt(t, ns[0]+"%24a%2524b", "%24").ok(t)
	namespaceAt(t, ns[0]+"%24a%24b", "%24").fails(t, namespaceNotFound)
}

// TestRefusedNames: what can be no name is refused where it would be created, whatever the way it comes in.
func TestRefusedNames(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	refused := map[string]string{
		"empty": "", "dot": ".", "dots": "..", "slash": "a/b", "NUL": "a\x00b", "newline": "a\nb", "tab": "a\tb", "DEL": "a\x7fb", "escape": "\x1b[m",
		"C1 control": "a\u0085b", "blank before": " a", "blank after": "a ", "256 bytes": strings.Repeat("x", 256), "5000 bytes": strings.Repeat("x", 5000), "delimiter": "a$b",
	}
	for label, name := range refused {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			id := child(ns, name)
			segment := url.PathEscape(ns[0] + "|" + name)
			for op, template := range map[string]string{"DeclareTable": "/v1/table/{id}/declare", "CreateNamespace": "/v1/namespace/{id}/create"} {
				delimiter := "%7C"
				if name == "a$b" {
					segment, delimiter = url.PathEscape(ns[0]+"$"+name), "%24"
				}
				if name == "a$b" && op == "CreateNamespace" {
					continue // in a path it is three names, and the parent is missing
				}
				a := suite.send(t, op, nil, obj{"id": id}, at(template, segment, delimiter))
				if name == "a$b" {
					a.failsWith(t, invalidInput, namespaceNotFound)
					continue
				}
				a.fails(t, invalidInput)
			}
		})
	}
	t.Run("new name in a rename", func(t *testing.T) {
		t.Parallel()
		tb := newTable(t)
		for label, name := range refused {
			a := suite.send(t, "RenameTable", tb.id, obj{"new_table_name": name})
			if a.code() != invalidInput {
				t.Errorf("%s: %s\n got %s\nwant code 13", label, a.call, a)
			}
		}
		suite.send(t, "DescribeTable", tb.id, nil).ok(t)
	})
	t.Run("id in a batch", func(t *testing.T) {
		t.Parallel()
		for _, name := range []string{"", ".", "..", "a/b", "a\x00b"} {
			suite.send(t, "BatchCommitTables", nil, obj{"operations": list{obj{"declare_table": obj{"id": child(ns, name)}}}}).fails(t, invalidInput)
		}
	})
	t.Run("invalid UTF-8", func(t *testing.T) {
		t.Parallel()
		describeAt(t, ns[0]+"%24%FF", "%24").fails(t, invalidInput)
		namespaceAt(t, "%C3%28", "%24").fails(t, invalidInput)
		suite.send(t, "DeclareTable", nil, nil, at("/v1/table/{id}/declare", ns[0]+"%24a%C0%AFb", "%24"), rawBody("{}")).fails(t, invalidInput)
		suite.send(t, "ListTables", ns, nil, query("delimiter=%FF")).fails(t, invalidInput)
	})
}

// TestCaseAndNormalForms: names are compared byte by byte.
func TestCaseAndNormalForms(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	for _, name := range []string{"table", "Table", "TABLE", "\u00e9", "e\u0301"} {
		declare(t, child(ns, name))
	}
	if got := suite.send(t, "ListTables", ns, nil).ok(t).strings(t, "tables"); len(got) != 5 {
		t.Errorf("tables = %q, want five", got)
	}
}

// TestNameWithTheUsualDelimiter: a request that uses another delimiter may use "$" inside a name; nobody else's id collides with it.
func TestNameWithTheUsualDelimiter(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	id := child(ns, "a$b")
	segment := url.PathEscape(ns[0] + "\x1fa$b")
	a := suite.send(t, "DeclareTable", nil, obj{"id": id}, at("/v1/table/{id}/declare", segment, "%1F"))
	if a.code() == invalidInput {
		return // refusing "$" in names altogether is the other way to be unambiguous
	}
	a.ok(t)
	describeAt(t, segment, "%1F").ok(t)
	describeAt(t, ns[0]+"$a$b", "%24").fails(t, namespaceNotFound)
	suite.send(t, "CreateNamespace", child(ns, "a"), nil).ok(t)
	describeAt(t, ns[0]+"$a$b", "%24").fails(t, tableNotFound)
	suite.send(t, "ListTables", ns, nil, query("delimiter=%1F")).ok(t)
	suite.send(t, "ListAllTables", nil, nil).ok(t) // such a name must not take the list of all tables from everybody else
	suite.send(t, "ListAllTables", nil, nil, query("delimiter=%1F")).ok(t)
	suite.send(t, "DropTable", nil, nil, at("/v1/table/{id}/drop", segment, "%1F")).ok(t)
}

// TestDuckDBStyleID: one client sends the whole joined id as one element of the body, even for namespaces three levels deep.
func TestDuckDBStyleID(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	deep := child(ns, "inner")
	suite.send(t, "CreateNamespace", deep, nil).ok(t)
	tb := declare(t, child(deep, "t"))
	joined := strings.Join(tb.id, "$")
	got := suite.send(t, "DescribeTable", tb.id, obj{"id": list{joined}}).ok(t)
	if got.str(t, "location") != tb.location {
		t.Errorf("location = %v, want %v", got["location"], tb.location)
	}
	suite.send(t, "TableExists", tb.id, obj{"id": list{joined}}).empty(t)
	suite.send(t, "TableExists", tb.id, obj{"id": list{joined + "x"}}).fails(t, invalidInput)
}

// TestDeepIDs: an id of hundreds of levels is refused as what it is.
func TestDeepIDs(t *testing.T) {
	t.Parallel()
	deep := strings.Split(strings.Repeat("a", 300), "")
	describeAt(t, strings.Join(deep, "$"), "%24").failsWith(t, invalidInput, namespaceNotFound)
	suite.send(t, "BatchCommitTables", nil, obj{"operations": list{declareOp(deep)}}).failsWith(t, invalidInput, namespaceNotFound)
}
