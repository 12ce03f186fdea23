package wire_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// atOnce makes count calls at the same time and counts how often each outcome came.
func atOnce(count int, ask func(i int) answer) map[int]int {
	outcomes := make([]int, count)
	var group sync.WaitGroup
	for i := range count {
		group.Go(func() { outcomes[i] = ask(i).code() })
	}
	group.Wait()
	tally := map[int]int{}
	for _, code := range outcomes {
		tally[code]++
	}
	return tally
}

// TestOneWins: where many ask at once for what only one can have, exactly one gets it and every other learns why not.
func TestOneWins(t *testing.T) {
	t.Parallel()
	const callers = 20
	ns := newNamespace(t)
	dir := existingDataset(t, 2)
	tb := declare(t, child(ns, "tagged"))
	tb.commit(t, 1, 2)
	transaction, _ := committed(t, nil)
	one := newTables(t, 3)
	suite.send(t, "CreateNamespace", child(ns, "to"), nil).ok(t)
	for i := range callers {
		declare(t, child(ns, fmt.Sprintf("from%d", i)))
	}
	cases := map[string]struct {
		ask   func(i int) answer
		loser int
	}{
		"a namespace": {func(int) answer { return suite.send(t, "CreateNamespace", child(ns, "one"), nil) }, namespaceExists},
		"a location": {func(i int) answer {
			return suite.send(t, "RegisterTable", child(ns, fmt.Sprintf("registered%d", i)), obj{"location": fileURI(dir)})
		}, tableExists},
		"a name to be renamed to": {func(i int) answer {
			return suite.send(t, "RenameTable", child(ns, fmt.Sprintf("from%d", i)), obj{"new_table_name": "one", "new_namespace_id": child(ns, "to")})
		}, tableExists},
		"a tag":      {func(int) answer { return suite.send(t, "CreateTableTag", tb.id, obj{"tag": "one", "version": 1}) }, tagExists},
		"a property": {func(i int) answer { return alter(t, transaction, set("one", fmt.Sprint(i), "Fail")) }, conflict},
		"a version":  {func(int) answer { return suite.send(t, "CreateTableVersion", one[0].id, one[0].staged(t, 1)) }, conflict},
		"two versions": {func(int) answer {
			return batch(t, list{one[1].entry(t, 1), one[2].entry(t, 1)})
		}, conflict},
		"a table to drop": {func(int) answer { return suite.send(t, "DropTable", child(ns, "dropped"), nil) }, tableNotFound},
	}
	declare(t, child(ns, "dropped"))
	for label, c := range cases {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			want := map[int]int{success: 1, c.loser: callers - 1}
			if diff := cmp.Diff(want, atOnce(callers, c.ask)); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSameCommitAtOnce: one commit sent many times at once, as impatient clients do, is one commit, and everybody is told so.
func TestSameCommitAtOnce(t *testing.T) {
	t.Parallel()
	tables := newTables(t, 3)
	entries := list{}
	for _, tb := range tables {
		entries = append(entries, tb.entry(t, 1), tb.entry(t, 2))
	}
	transactions := make([]string, 20)
	var group sync.WaitGroup
	for i := range transactions {
		group.Go(func() { transactions[i] = batch(t, entries).ok(t).str(t, "transaction_id") })
	}
	group.Wait()
	for i, id := range transactions {
		if id != transactions[0] {
			t.Errorf("answer %d has transaction %s, answer 0 has %s", i, id, transactions[0])
		}
	}
	allAt(t, tables, 2)
}

// TestDropWhileWriting: a table that is dropped under its writers answers each of them with a plain yes, conflict or no such table,
// and a namespace dropped under those who declare in it likewise. Nobody meets an internal error.
func TestDropWhileWriting(t *testing.T) {
	t.Parallel()
	for range 5 {
		tb := newTable(t)
		bodies := make([]obj, 8)
		for i := range bodies {
			bodies[i] = tb.staged(t, 1)
		}
		tally := atOnce(10, func(i int) answer {
			if i >= len(bodies) {
				return suite.send(t, "DropTable", tb.id, nil)
			}
			return suite.send(t, "CreateTableVersion", tb.id, bodies[i])
		})
		for code := range tally {
			// 13: the staged manifest was purged with the table before it was read.
			if code != success && code != conflict && code != tableNotFound && code != invalidInput {
				t.Errorf("drop and commit at once answered %v", tally)
			}
		}
		suite.send(t, "TableExists", tb.id, nil).fails(t, tableNotFound)
	}
	for range 5 {
		ns := newNamespace(t)
		tally := atOnce(12, func(i int) answer {
			switch {
			case i%4 == 3:
				return suite.send(t, "DropNamespace", ns, obj{"behavior": "Cascade"})
			case i%4 == 2:
				return suite.send(t, "CreateNamespace", child(ns, fmt.Sprint("n", i)), nil)
			}
			return suite.send(t, "DeclareTable", child(ns, fmt.Sprint("t", i)), nil)
		})
		for code := range tally {
			if code != success && code != namespaceNotFound {
				t.Errorf("drop and declare at once answered %v", tally)
			}
		}
		suite.send(t, "NamespaceExists", ns, nil).fails(t, namespaceNotFound)
		suite.send(t, "CreateNamespace", ns, nil).ok(t)
		if got := suite.send(t, "ListTables", ns, nil).ok(t).strings(t, "tables"); len(got) != 0 {
			t.Errorf("the new namespace holds %q", got)
		}
	}
}
