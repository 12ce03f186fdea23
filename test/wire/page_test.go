package wire_test

import (
	"fmt"
	"net/url"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listing is one paged operation on a fixture: how to ask, and what all its pages together hold.
type listing struct {
	op    string
	id    []string
	extra string                         // further query parameters
	read  func(*testing.T, obj) []string // the items of one page
	want  []string                       // all items, sorted
	order func(a, b string) bool         // non-nil: the order in which they must come
	keep  func(string) bool              // non-nil: which of the items belong to this test, where others share the list
}

// page asks for one page.
func (l listing) page(t *testing.T, limit, pageToken string) answer {
	t.Helper()
	q := l.extra
	if limit != "" {
		q += "&limit=" + limit
	}
	if pageToken != "" {
		q += "&page_token=" + url.QueryEscape(pageToken)
	}
	return suite.send(t, l.op, l.id, nil, andQuery(strings.TrimPrefix(q, "&")))
}

// next is the token for the page after this one; null, "" and absence mean the end.
func next(t *testing.T, page obj) string {
	t.Helper()
	switch v := page["page_token"].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		t.Fatalf("page_token %v is no string", v)
		return ""
	}
}

// walk follows the tokens and returns the items of all pages. A page larger than the limit, a repeated token and an endless
// walk fail the test.
func (l listing) walk(t *testing.T, limit int) []string {
	t.Helper()
	var all []string
	seen := map[string]bool{}
	for pageToken := ""; ; {
		page := l.page(t, fmt.Sprint(limit), pageToken).ok(t)
		got := l.read(t, page)
		if len(got) > limit {
			t.Fatalf("%s: page of %d items with limit %d", l.op, len(got), limit)
		}
		all = append(all, got...)
		pageToken = next(t, page)
		if pageToken == "" {
			return all
		}
		if seen[pageToken] {
			t.Fatalf("%s: token %q came twice", l.op, pageToken)
		}
		seen[pageToken] = true
	}
}

// check walks the list at every limit from 1 to one more than there are items, and then asks with limits and tokens that are none.
func (l listing) check(t *testing.T) {
	t.Helper()
	limits := []int{}
	for i := 1; i <= len(l.want)+1; i++ {
		limits = append(limits, i)
	}
	if l.keep != nil {
		limits = []int{100, 1000} // the list holds other tables too, and may be long: two walks are enough
	}
	for _, limit := range limits {
		got := l.walk(t, limit)
		if l.keep != nil {
			got = filter(got, l.keep)
		}
		if l.order != nil && !sort.SliceIsSorted(got, func(i, j int) bool { return l.order(got[i], got[j]) }) {
			t.Errorf("%s with limit %d: order %q", l.op, limit, got)
		}
		sort.Strings(got)
		if diff := cmp.Diff(l.want, got); diff != "" {
			t.Errorf("%s with limit %d (-want +got):\n%s", l.op, limit, diff)
		}
	}
	if l.keep == nil {
		exact := l.page(t, fmt.Sprint(len(l.want)), "").ok(t)
		if got := next(t, exact); got != "" {
			t.Errorf("%s: a page with everything on it still has the token %q", l.op, got)
		}
	}
	l.page(t, "2147483647", "").ok(t)
	l.page(t, "", "").ok(t)
	l.read(t, l.page(t, "0", "").ok(t))
	for _, limit := range []string{"-1", "abc", "1.5", "2147483648", "99999999999999999999", "0x10"} {
		mentions(t, l.page(t, limit, "").fails(t, invalidInput), "limit")
	}
	for _, foreign := range []string{"t03", "!!!", "AAAA", "eyJhIjoxfQ", "null", strings.Repeat("A", 5000), "\xff"} {
		l.page(t, "2", foreign).fails(t, invalidInput)
	}
	l.page(t, "2", "").ok(t)
	suite.send(t, l.op, l.id, nil, andQuery("limit=2&page_token=")).ok(t)
}

func filter(in []string, keep func(string) bool) []string {
	out := []string{}
	for _, s := range in {
		if keep(s) {
			out = append(out, s)
		}
	}
	return out
}

// names reads a page that is a list of strings.
func names(member string) func(*testing.T, obj) []string {
	return func(t *testing.T, page obj) []string {
		t.Helper()
		return page.strings(t, member)
	}
}

// keys reads a page that is a map.
func keys(member string) func(*testing.T, obj) []string {
	return func(t *testing.T, page obj) []string {
		t.Helper()
		out := []string{}
		for k := range page.object(t, member) {
			out = append(out, k)
		}
		return out
	}
}

// versionNumbers reads a page of versions as numbers of equal length.
func versionNumbers(t *testing.T, page obj) []string {
	t.Helper()
	out := []string{}
	for _, n := range numbers(t, page) {
		out = append(out, fmt.Sprintf("%04d", n))
	}
	return out
}

// series is count names that share a prefix, in order.
func series(prefix string, count int) []string {
	out := []string{}
	for i := 1; i <= count; i++ {
		out = append(out, fmt.Sprintf("%s%02d", prefix, i))
	}
	return out
}

// TestPagesOfNamespaces and the tests after it: every item once at every limit, a token exactly when more remains, and a clear
// refusal of limits and tokens that are none.
func TestPagesOfNamespaces(t *testing.T) {
	t.Parallel()
	ns, want := newNamespace(t), series("n", 7)
	for _, name := range want {
		suite.send(t, "CreateNamespace", child(ns, name), nil).ok(t)
	}
	declare(t, child(ns, "table"))
	listing{op: "ListNamespaces", id: ns, read: names("namespaces"), want: want}.check(t)
}

func TestPagesOfTables(t *testing.T) {
	t.Parallel()
	ns, want := newNamespace(t), series("t", 7)
	for _, name := range want {
		declare(t, child(ns, name))
	}
	suite.send(t, "CreateNamespace", child(ns, "space"), nil).ok(t)
	l := listing{op: "ListTables", id: ns, read: names("tables"), want: want}
	l.check(t)
	t.Run("only tables with data", func(t *testing.T) {
		l := l
		l.extra, l.want = "include_declared=false", []string{"t03", "t05", "t06"}
		for _, name := range l.want {
			tb := located(t, child(ns, name), suite.send(t, "DescribeTable", child(ns, name), nil).ok(t))
			tb.commit(t, 1, 1)
		}
		l.check(t)
	})
	t.Run("a token of another list is foreign", func(t *testing.T) {
		pageToken := next(t, l.page(t, "2", "").ok(t))
		if pageToken == "" {
			t.Fatal("no token after two of seven")
		}
		suite.send(t, "ListNamespaces", ns, nil, andQuery("page_token="+url.QueryEscape(pageToken))).fails(t, invalidInput)
	})
	t.Run("a token outlives its item", func(t *testing.T) {
		pageToken := next(t, l.page(t, "2", "").ok(t))
		suite.send(t, "DropTable", child(ns, "t02"), nil).ok(t)
		if got := l.read(t, l.page(t, "2", pageToken).ok(t)); !cmp.Equal(got, []string{"t03", "t04"}) {
			t.Errorf("page after a dropped item = %q, want t03 and t04", got)
		}
	})
}

func TestPagesOfAllTables(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	suite.send(t, "CreateNamespace", child(ns, "deep"), nil).ok(t)
	want := []string{}
	for _, name := range series("t", 4) {
		declare(t, child(ns, name))
		declare(t, child(ns, "deep", name))
		want = append(want, ns[0]+"$"+name, ns[0]+"$deep$"+name)
	}
	sort.Strings(want)
	mine := func(s string) bool { return strings.HasPrefix(s, ns[0]) }
	listing{op: "ListAllTables", read: names("tables"), want: want, keep: mine}.check(t)
	t.Run("with the request's delimiter", func(t *testing.T) {
		var all []string
		for pageToken := ""; ; {
			page := suite.send(t, "ListAllTables", nil, nil, query("delimiter=%3A%3A&page_token="+url.QueryEscape(pageToken))).ok(t)
			all = append(all, page.strings(t, "tables")...)
			if pageToken = next(t, page); pageToken == "" {
				break
			}
		}
		got := filter(all, mine)
		if len(got) != 8 || !strings.Contains(strings.Join(got, " "), ns[0]+"::deep::t01") {
			t.Errorf("tables = %q, want eight joined by ::", got)
		}
	})
	t.Run("without a limit, with a slash", func(t *testing.T) {
		suite.send(t, "ListAllTables", nil, nil, path("/v1/table/")).ok(t).strings(t, "tables")
	})
}

func TestPagesOfVersions(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 6)
	want := []string{"0001", "0002", "0003", "0004", "0005", "0006"}
	ascending := func(a, b string) bool { return a < b }
	descending := func(a, b string) bool { return a > b }
	base := listing{op: "ListTableVersions", id: tb.id, read: versionNumbers, want: want}
	for label, l := range map[string]listing{
		"as it comes": {extra: ""}, "ascending": {extra: "descending=false", order: ascending}, "descending": {extra: "descending=true", order: descending},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			whole := base
			whole.extra, whole.order = l.extra, l.order
			whole.check(t)
		})
	}
	t.Run("the head, as every open asks for it", func(t *testing.T) {
		t.Parallel()
		got := numbers(t, suite.send(t, "ListTableVersions", tb.id, nil, andQuery("limit=1&descending=true")).ok(t))
		if !cmp.Equal(got, []int64{6}) {
			t.Errorf("versions = %v, want the head 6", got)
		}
	})
}

func TestPagesOfTagsAndBranches(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	tb.commit(t, 1, 2)
	want := series("r", 5)
	for _, name := range want {
		tb.writeTag(t, name, 1)
		tb.writeBranch(t, name, 2)
	}
	t.Run("tags", func(t *testing.T) {
		t.Parallel()
		listing{op: "ListTableTags", id: tb.id, read: keys("tags"), want: want}.check(t)
	})
	t.Run("branches", func(t *testing.T) {
		t.Parallel()
		listing{op: "ListTableBranches", id: tb.id, read: keys("branches"), want: want}.check(t)
	})
}

// TestEmptyLists are [] and {}, never null: the Rust client takes null for a broken answer.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	tb := newTable(t)
	ns := child(tb.id[:1], "empty")
	suite.send(t, "CreateNamespace", ns, nil).ok(t)
	suite.send(t, "ListNamespaces", ns, nil).ok(t).strings(t, "namespaces")
	suite.send(t, "ListTables", ns, nil).ok(t).strings(t, "tables")
	suite.send(t, "ListTableVersions", tb.id, nil).ok(t).items(t, "versions")
	suite.send(t, "ListTableTags", tb.id, nil).ok(t).object(t, "tags")
	suite.send(t, "ListTableBranches", tb.id, nil).ok(t).object(t, "branches")
	for _, op := range []string{"ListTableVersions", "ListTableTags", "ListTableBranches"} {
		if got := next(t, suite.send(t, op, tb.id, nil).ok(t)); got != "" {
			t.Errorf("%s: an empty list has the token %q", op, got)
		}
	}
}
