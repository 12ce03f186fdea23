package wire_test

import (
	"fmt"
	"strings"
	"testing"
)

// difference is one request on which this catalog and the reference server part, put to both.
type difference struct {
	section string
	request string // in words a reader can repeat
	ask     func(t *testing.T) answer
	// show adds what matters in a success beyond its status; nil where the status says it all.
	show  func(t *testing.T, o obj) string
	right string // whose answer is right
	why   string
}

// render puts an answer into the few words of the document.
func (d difference) render(t *testing.T, a answer) string {
	t.Helper()
	switch code := a.code(); {
	case code == success && d.show != nil && len(a.body) > 0:
		return fmt.Sprintf("%d, %s", a.status, d.show(t, decode(t, a.body)))
	case code == success:
		return fmt.Sprint(a.status)
	case code >= 0:
		return fmt.Sprintf("%d, code %d", a.status, code)
	case len(a.body) == 0:
		return fmt.Sprintf("%d with an empty body", a.status)
	default:
		return fmt.Sprintf("%d without a code", a.status)
	}
}

const (
	ours    = "Lancerest"
	bothFit = "both fit"
)

// has says whether a member of an object is there.
func has(member string) func(*testing.T, obj) string {
	return func(_ *testing.T, o obj) string {
		if o[member] == nil {
			return "no `" + member + "`"
		}
		return "with `" + member + "`"
	}
}

// sends makes the ask of a difference that needs nothing prepared but a table "t" in a namespace of its own.
func sends(op string, body func(tb table, t *testing.T) obj, opts ...option) func(*testing.T) answer {
	return func(t *testing.T) answer {
		tb := newTable(t)
		id := tb.id
		if operationNamed(t, op).kind == namespaceID {
			id = tb.id[:1]
		}
		var b obj
		if body != nil {
			b = body(tb, t)
		}
		return suite.send(t, op, id, b, opts...)
	}
}

// differences lists all that are known. Whoever finds another adds it here; the answers beside it are measured, not written.
func differences() []difference {
	all := differencesOfNames()
	all = append(all, differencesOfTables()...)
	all = append(all, differencesOfVersions()...)
	all = append(all, differencesOfBatches()...)
	return append(all, differencesOfHTTP()...)
}

func differencesOfNames() []difference {
	const section = "Namespaces and names"
	at := func(op, segment string, opts ...option) func(*testing.T) answer {
		return func(t *testing.T) answer {
			tb := newTable(t)
			p := strings.ReplaceAll(operationNamed(t, op).path, "{id}", strings.NewReplacer("NS", tb.id[0], "NONE", "wire_"+token()).Replace(segment))
			return suite.send(t, op, nil, nil, append([]option{path(p)}, opts...)...)
		}
	}
	return []difference{
		{section, "CreateNamespace with `mode: ExistOk` on one that exists", sends("CreateNamespace", func(table, *testing.T) obj { return obj{"mode": "ExistOk"} }), nil, ours,
			"The mode exists for this case; the reference ignores it."},
		{section, "CreateNamespace with `mode: Nonsense`", func(t *testing.T) answer {
			return suite.send(t, "CreateNamespace", child(newNamespace(t), "x"), obj{"mode": "Nonsense"})
		}, nil, ours, "An unknown mode is invalid input; a caller that misspells it must learn so."},
		{section, "DropNamespace with `mode: Skip` on one that does not exist", func(t *testing.T) answer {
			return suite.send(t, "DropNamespace", []string{"wire_" + token()}, obj{"mode": "Skip"})
		}, nil, ours, "Skip means that a missing namespace is a success."},
		{section, "DropNamespace with `behavior: Cascade` on one with a table", sends("DropNamespace", func(table, *testing.T) obj { return obj{"behavior": "Cascade"} }), nil, ours,
			"Cascade drops the children first; the reference knows Restrict alone."},
		{section, "DescribeNamespace of one created without properties", sends("DescribeNamespace", nil), has("properties"), ours,
			"`{}` says that properties are supported and none are set; absence says that they are not supported."},
		{section, "ListNamespaces of a namespace that does not exist", at("ListNamespaces", "NONE"), nil, ours,
			"Code 1. An empty list hides a misspelled name."},
		{section, "ListTables of a namespace that does not exist", at("ListTables", "NONE"), nil, ours, "As above."},
		{section, "DeclareTable below a namespace that does not exist", at("DeclareTable", "NONE$t"), nil, ours,
			"Code 1. The reference leaves a table that no list of namespaces leads to."},
		{section, "DescribeTable below a namespace that does not exist", at("DescribeTable", "NONE$t"), nil, ours,
			"The documented order of checks is namespace, then table."},
		{section, "DescribeTable at `ns$$t`, with an empty name between two delimiters", at("DescribeTable", "NS$$t"), nil, ours,
			"Dropping empty names makes two ids one object. The specification is silent; refusing is the safe reading."},
		{section, "DeclareTable of a name with a space, as the Rust client encodes it (`ns$a+b`)", func(t *testing.T) answer {
			return suite.send(t, "DeclareTable", child(newNamespace(t), "a b"), nil)
		}, nil, ours, "The client form-encodes the path and sends the plain name in the body; the reference compares `a+b` with `a b` and refuses its own client."},
		{section, "DescribeTable with the whole id as one element of the body, `[\"ns$t\"]`", sends("DescribeTable", func(tb table, _ *testing.T) obj {
			return obj{"id": list{strings.Join(tb.id, "$")}}
		}), nil, ours, "The DuckDB extension sends it so; joined, path and body agree."},
		{section, "DeclareTable of the name `a/b` (`%2F` in the path)", at("DeclareTable", "NS%24a%2Fb"), nil, ours,
			"Proxies turn `%2F` into `/` or refuse it, so such a table would be out of reach for some clients. The specification leaves the grammar of names open."},
		{section, "DeclareTable of the name `..`", at("DeclareTable", "NS%24.."), nil, ours,
			"A name that becomes part of a path must not climb out of it."},
		{section, "DeclareTable of a name with a line break", at("DeclareTable", "NS%24a%0Ab"), nil, ours, "Control characters break logs, paths and policies."},
	}
}

func differencesOfTables() []difference {
	const section = "Tables"
	return []difference{
		{section, "DescribeTable with `version: 99` of a table without versions", sends("DescribeTable", func(table, *testing.T) obj { return obj{"version": 99} }), nil, ours,
			"Code 11. The reference looks at the version only when details are asked for."},
		{section, "DescribeTable with `tag` and `version` at once", sends("DescribeTable", func(table, *testing.T) obj { return obj{"version": 1, "tag": "x"} }), nil, ours,
			"The specification says that they cannot be combined."},
		{section, "DescribeTable with `check_declared` after a writer staged a manifest and died", func(t *testing.T) answer {
			tb := newTable(t)
			tb.stage(t, "", finalName(1), manifestBytes(manifestSpec{version: 1}))
			return suite.send(t, "DescribeTable", tb.id, obj{"check_declared": true})
		}, func(_ *testing.T, o obj) string { return fmt.Sprintf("`is_only_declared: %v`", o["is_only_declared"]) }, ours,
			"A staged manifest is no version: the table still has no data."},
		{section, "DescribeTable of a table declared without properties", sends("DescribeTable", nil), has("properties"), ours, "As with namespaces: `{}` rather than \"not supported\"."},
		{section, "RegisterTable of a dataset at an absolute URI inside the root", func(t *testing.T) answer {
			return suite.send(t, "RegisterTable", child(newNamespace(t), "t"), obj{"location": fileURI(existingDataset(t, 1))})
		}, nil, ours, "The specification's own example is an absolute URI, and Spark sends one. The reference takes paths relative to its root alone."},
		{section, "RegisterTable at a place inside the root where no dataset is", func(t *testing.T) answer {
			return suite.send(t, "RegisterTable", child(newNamespace(t), "t"), obj{"location": "nothing_" + token() + ".lance"})
		}, nil, ours, "Code 13 for what is no Lance table. The reference does not look."},
		{section, "RenameTable", sends("RenameTable", func(table, *testing.T) obj { return obj{"new_table_name": "b"} }), nil, ours, "Not implemented in the reference, and reported as an internal error."},
		{section, "ListAllTables, with a table two namespaces down", func(t *testing.T) answer {
			ns := newNamespace(t)
			suite.send(t, "CreateNamespace", child(ns, "deep"), nil).ok(t)
			declare(t, child(ns, "deep", "t"))
			return suite.send(t, "ListAllTables", nil, nil, andQuery("limit=100000"))
		}, func(t *testing.T, o obj) string {
			if strings.Contains(strings.Join(o.strings(t, "tables"), " "), "$deep$t") {
				return "listed"
			}
			return "not listed"
		}, ours, "The operation lists the tables of every namespace; the reference looks at the root alone."},
		{section, "ListTables with `limit=-1`", sends("ListTables", nil, andQuery("limit=-1")), nil, ours, "A negative limit is a mistake of the caller."},
		{section, "ListTables with a `page_token` that no list gave", sends("ListTables", nil, andQuery("page_token=zzz")), nil, ours,
			"Tokens are opaque; one that was made up would skip tables without a word."},
		{section, "ListTableTags of a table without data", sends("ListTableTags", nil), has("tags"), ours, "The table exists and has no tags; code 4 says that it does not exist."},
		{section, "ListTableTags by GET, as lance 13 clients send it", sends("ListTableTags", nil, method(get), noBody()), nil, ours, "Older clients are in the field."},
		{section, "CreateTableTag of the name `é`", func(t *testing.T) answer {
			tb := newTable(t)
			tb.commit(t, 1, 1)
			return suite.send(t, "CreateTableTag", tb.id, obj{"tag": "é", "version": 1})
		}, nil, ours, "The Lance library writes such a tag and then fails every listing of that table's tags."},
		{section, "DescribeTable with details of a table with data", func(t *testing.T) answer {
			return suite.send(t, "DescribeTable", realTable(t).id, obj{"load_detailed_metadata": true}, andQuery("load_detailed_metadata=true"))
		}, has("stats"), ours, "The counts of deleted rows and of fragments are part of a detailed description."},
		{section, "DescribeTable with details of the tag of version 1, of three versions", func(t *testing.T) answer {
			tb := realTable(t)
			suite.send(t, "CreateTableTag", tb.id, obj{"tag": "first", "version": 1}).ok(t)
			return suite.send(t, "DescribeTable", tb.id, obj{"tag": "first", "load_detailed_metadata": true}, andQuery("load_detailed_metadata=true"))
		}, func(t *testing.T, o obj) string { return fmt.Sprintf("version %d", o.num(t, "version")) }, ours, "The reference ignores the tag and describes the latest version."},
		{section, "CountTableRows of a table that is only declared", sends("CountTableRows", nil), nil, ours, "The table exists and has no rows; code 4 says that it does not exist."},
		{section, "ListTableIndices with `limit: -1`", func(t *testing.T) answer {
			return suite.send(t, "ListTableIndices", realTable(t).id, obj{"limit": -1})
		}, nil, ours, "A negative limit is a mistake of the caller."},
	}
}

func differencesOfVersions() []difference {
	const section = "Versions"
	staged := func(final string, content []byte, more obj) func(*testing.T) answer {
		return sends("CreateTableVersion", func(tb table, t *testing.T) obj {
			return with(obj{"version": 1, "manifest_path": tb.stage(t, "", final, content)}, more)
		})
	}
	return []difference{
		{section, "CreateTableVersion with a staged file that is no manifest", staged(finalName(1), []byte("this is no manifest at all"), nil), nil, ours,
			"Published, it makes the table unreadable."},
		{section, "CreateTableVersion with a staged manifest of another version", staged(finalName(1), manifestBytes(manifestSpec{version: 7}), nil), nil, ours, "As above: readers trust the number inside."},
		{section, "CreateTableVersion with a staged file in another table's directory", func(t *testing.T) answer {
			tb, other := newTable(t), newTable(t)
			return suite.send(t, "CreateTableVersion", tb.id, other.staged(t, 1))
		}, nil, ours, "A caller who may write one table could have the server move any object that the server can reach."},
		{section, "CreateTableVersion with `version: 0`", staged(finalName(1), manifestBytes(manifestSpec{version: 1}), obj{"version": 0}), nil, ours, "No table has a version 0; it is not a conflict that a retry could solve."},
		{section, "CreateTableVersion with `naming_scheme: V3`", staged(finalName(1), manifestBytes(manifestSpec{version: 1}), obj{"naming_scheme": "V3"}), nil, ours,
			"The field is `V1` or `V2`; taking anything else for V2 publishes under a name that the caller did not mean."},
		{section, "CreateTableVersion, the same request a second time", func(t *testing.T) answer {
			tb := newTable(t)
			body := tb.staged(t, 1)
			suite.send(t, "CreateTableVersion", tb.id, body).ok(t)
			return suite.send(t, "CreateTableVersion", tb.id, body)
		}, nil, ours, "The first answer may have been lost. The reference compares with the staged file, which it has removed by then."},
		{section, "CreateTableVersion with `metadata`, then DescribeTableVersion", func(t *testing.T) answer {
			tb := newTable(t)
			suite.send(t, "CreateTableVersion", tb.id, with(tb.staged(t, 1), obj{"metadata": obj{"a": "b"}})).ok(t)
			return tb.describeVersion(t, 1)
		}, func(t *testing.T, o obj) string { return has("metadata")(t, o.object(t, "version")) }, ours, "What is given is kept; the reference drops it."},
		{section, "CreateTableVersion of a detached version (negative number)", func(t *testing.T) answer {
			tb := newTable(t)
			return suite.send(t, "CreateTableVersion", tb.id, tb.staged(t, detached(77)))
		}, nil, ours, "pylance sends detached commits so; refused, they end in \"commit result unknown\"."},
		{section, "CreateTableVersion, the second version of a branch whose reference file is not there yet", func(t *testing.T) answer {
			tb := newTable(t)
			tb.commit(t, 1, 1)
			suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, "dev", 1)).ok(t)
			return suite.send(t, "CreateTableVersion", tb.id, tb.stagedOn(t, "dev", 2))
		}, nil, ours, "Both take such a chain for the remains of a deleted branch. Code 22 is the one for branches; 4 says that the table is gone."},
		{section, "ListTableVersions of an unknown branch", sends("ListTableVersions", nil, andQuery("branch=nowhere")), nil, bothFit,
			"Clients take codes 4 and 22 and an empty list alike."},
		{section, "ListTableVersions with `limit=2` of three versions", func(t *testing.T) answer {
			tb := newTable(t)
			tb.commit(t, 1, 3)
			return suite.send(t, "ListTableVersions", tb.id, nil, andQuery("limit=2"))
		}, has("page_token"), ours, "A token must come when more remain; the reference cuts the list and says nothing."},
		{section, "BatchDeleteTableVersions with the range 5 to 2", func(t *testing.T) answer {
			tb := newTable(t)
			tb.commit(t, 1, 1)
			return suite.send(t, "BatchDeleteTableVersions", tb.id, obj{"ranges": list{obj{"start_version": 5, "end_version": 2}}})
		}, nil, ours, "A range turned round is a mistake of the caller."},
		{section, "BatchDeleteTableVersions of all versions, `{0, -1}`", func(t *testing.T) answer {
			tb := newTable(t)
			tb.commit(t, 1, 2)
			return suite.send(t, "BatchDeleteTableVersions", tb.id, obj{"ranges": list{obj{"start_version": 0, "end_version": -1}}})
		}, nil, bothFit, "The specification does not say whether the latest version may go. Without it the chain would begin at 1 again, with numbers that writers and caches know as other versions."},
	}
}

func differencesOfBatches() []difference {
	const section = "Many tables at once, and transactions"
	return []difference{
		{section, "BatchCreateTableVersions of two tables", func(t *testing.T) answer {
			tables := newTables(t, 2)
			return batch(t, list{tables[0].entry(t, 1), tables[1].entry(t, 1)})
		}, has("transaction_id"), ours, "Not implemented in the reference, and reported as an internal error."},
		{section, "BatchCommitTables that declares two tables", func(t *testing.T) answer {
			ns := newNamespace(t)
			return commitTables(t, list{declareOp(child(ns, "a")), declareOp(child(ns, "b"))})
		}, has("transaction_id"), ours, "As above."},
		{section, "DescribeTransaction of an unknown id", func(t *testing.T) answer {
			return suite.send(t, "DescribeTransaction", []string{uuid4()}, nil)
		}, nil, ours, "Code 10. The form of the id is left open: both take a table's id and a version or uuid, Lancerest also the `transaction_id` of a commit."},
	}
}

func differencesOfHTTP() []difference {
	const section = "HTTP"
	return []difference{
		{section, "TableExists with no body and no Content-Type", sends("TableExists", nil, noBody()), nil, ours, "Clients send body-less requests on many routes; an empty body can only mean `{}`."},
		{section, "TableExists with the body `null`", sends("TableExists", nil, rawBody("null")), nil, ours, "As above; lance 13 sends it."},
		{section, "TableExists with a gzip body", func(t *testing.T) answer {
			return suite.send(t, "TableExists", newTable(t).id, nil, rawBody(string(compress(t, []byte("{}")))), header("Content-Encoding", "gzip"))
		}, nil, ours, "An encoding that is named is either read or refused by name."},
		{section, "NamespaceExists with a body of 3 MB", sends("NamespaceExists", nil, rawBody(string(bigBody(3<<20)))), nil, ours,
			"A batch of thousands of tables has megabytes. Lancerest takes 32 MiB and answers 413 as JSON beyond."},
		{section, "An unknown route", func(t *testing.T) answer { return suite.do(t, call{method: post, path: "/v1/nonsense"}) }, nil, ours,
			"Clients read the code alone; an empty body is an internal error to them."},
		{section, "PUT on a route", sends("TableExists", nil, method("PUT")), nil, ours, "As above, and Allow says what would be right."},
		{section, "An error's `instance`", func(t *testing.T) answer {
			a := suite.send(t, "DescribeTable", child(newNamespace(t), "t"), nil)
			a.status, a.call.op = 200, "" // shown like a success, for its members
			a.body = marshal(t, with(decode(t, a.body), obj{"code": nil}))
			return a
		}, has("instance"), ours, "It ties what the caller saw to the server's log."},
		{section, "`GET /readyz`", func(t *testing.T) answer { return suite.do(t, call{method: get, path: "/readyz"}) }, nil, ours, "Outside of the specification: for whoever operates it."},
	}
}
