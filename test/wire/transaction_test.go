package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// transaction describes a transaction.
func transaction(t *testing.T, id string) obj {
	t.Helper()
	return suite.send(t, "DescribeTransaction", []string{id}, nil).ok(t)
}

// committed makes a transaction over two tables and returns its id.
func committed(t *testing.T, more obj, opts ...option) (id string, tables []table) {
	t.Helper()
	tables = newTables(t, 2)
	body := with(obj{"entries": list{tables[0].entry(t, 1), tables[1].entry(t, 1)}}, more)
	return suite.send(t, "BatchCreateTableVersions", nil, body, opts...).ok(t).str(t, "transaction_id"), tables
}

// TestDescribeTransaction says when, and which tables and versions; every property is a string.
func TestDescribeTransaction(t *testing.T) {
	t.Parallel()
	id, tables := committed(t, nil)
	got := transaction(t, id)
	if s := got.str(t, "status"); !strings.EqualFold(s, "Succeeded") {
		t.Errorf("status = %s, want Succeeded", s)
	}
	text := []string{}
	for k, v := range got.object(t, "properties") {
		s, ok := v.(string)
		if !ok {
			t.Errorf("property %s = %v is no string", k, v)
		}
		text = append(text, k, s)
	}
	mentions(t, strings.Join(text, " "), tables[0].id[0], "t0", "t1", "1")
	single := tables[0].staged(t, 2)
	own := suite.send(t, "CreateTableVersion", tables[0].id, single).ok(t)
	if own["transaction_id"] != nil {
		transaction(t, own.str(t, "transaction_id"))
	}
	mentions(t, suite.send(t, "DescribeTransaction", []string{uuid4()}, nil).fails(t, transactionNotFound), "-")
	for _, other := range []string{"x", "1", "not-a-uuid"} {
		suite.send(t, "DescribeTransaction", []string{other}, nil).fails(t, transactionNotFound)
	}
	suite.send(t, "DescribeTransaction", child(tables[0].id, "1"), nil).fails(t, transactionNotFound)
}

// TestContext reaches the server in three ways: in the body, as headers of the caller's own names, and as x-lance-ctx- headers.
// It is recorded with the transaction.
func TestContext(t *testing.T) {
	t.Parallel()
	id, _ := committed(t, obj{"context": obj{"run": "body-42", "header.x-body-mapped": "mapped-43"}},
		header("x-lance-ctx-trace", "header-44"), header("X-Lance-Ctx-Job", "header-45"), header("X-My-Run", "header-46"))
	properties := transaction(t, id).object(t, "properties")
	for key, value := range map[string]string{"run": "body-42", "x-body-mapped": "mapped-43", "trace": "header-44", "job": "header-45", "x-my-run": "header-46"} {
		found := false
		for k, v := range properties {
			s, _ := v.(string)
			found = found || (strings.Contains(strings.ToLower(k+" "+s), key) && strings.Contains(s, value))
		}
		if !found {
			t.Errorf("context %s = %s is not in %v", key, value, properties)
		}
	}
}

// TestIdentityIsNeverShown: neither the one in the body nor the one in the headers comes back from anywhere.
func TestIdentityIsNeverShown(t *testing.T) {
	t.Parallel()
	secrets := []string{"key-" + token(), "bearer-" + token(), "bodykey-" + token(), "bodytoken-" + token()}
	identity := obj{"identity": obj{"api_key": secrets[2], "auth_token": secrets[3]}}
	headers := []option{header("x-api-key", secrets[0]), header("Authorization", "Bearer "+secrets[1])}
	id, tables := committed(t, identity, headers...)
	answers := []answer{
		suite.send(t, "DescribeTransaction", []string{id}, identity, headers...),
		suite.send(t, "DescribeTable", tables[0].id, identity, headers...),
		suite.send(t, "DescribeTable", child(tables[0].id[:1], "none"), identity, headers...),
		suite.send(t, "CreateTableVersion", tables[0].id, with(identity, obj{"version": "x"}), headers...),
		suite.send(t, "BatchCreateTableVersions", nil, with(identity, obj{"entries": list{obj{}}}), headers...),
		suite.send(t, "DescribeTableVersion", tables[0].id, with(identity, obj{"version": 1}), headers...),
		suite.send(t, "DescribeTable", tables[0].id, nil, append(headers, rawBody(`{"identity":"`+secrets[2]+`"}`))...),
	}
	for _, a := range answers {
		for _, secret := range secrets {
			if strings.Contains(string(a.body), secret) {
				t.Errorf("%s\n shows %q in %s", a.call, secret, a)
			}
			for k, v := range a.header {
				if strings.Contains(strings.Join(v, " "), secret) {
					t.Errorf("%s\n shows %q in header %s", a.call, secret, k)
				}
			}
		}
	}
}

// set and unset are actions on a property; an empty mode is left away.
func set(key, value, mode string) obj {
	return obj{"setPropertyAction": withMode(obj{"key": key, "value": value}, mode)}
}

func unset(key, mode string) obj { return obj{"unsetPropertyAction": withMode(obj{"key": key}, mode)} }

func withMode(o obj, mode string) obj {
	if mode != "" {
		o["mode"] = mode
	}
	return o
}

// alter sends actions on a transaction.
func alter(t *testing.T, id string, actions ...any) answer {
	t.Helper()
	return suite.send(t, "AlterTransaction", []string{id}, obj{"actions": list(actions)})
}

// TestAlterTransactionProperties: the modes of set and unset, in any case.
func TestAlterTransactionProperties(t *testing.T) {
	t.Parallel()
	id, _ := committed(t, nil)
	value := func(key string) any {
		t.Helper()
		return transaction(t, id).object(t, "properties")[key]
	}
	steps := []struct {
		label  string
		action obj
		code   int
		key    string
		want   any
	}{
		{"set", set("a", "1", ""), success, "a", "1"},
		{"overwrite by default", set("a", "2", ""), success, "a", "2"},
		{"overwrite", set("a", "3", "OVERWRITE"), success, "a", "3"},
		{"skip an existing one", set("a", "4", "skip"), success, "a", "3"},
		{"skip sets a missing one", set("b", "1", "Skip"), success, "b", "1"},
		{"fail on an existing one", set("a", "5", "Fail"), conflict, "a", "3"},
		{"fail sets a missing one", set("c", "1", "FAIL"), success, "c", "1"},
		{"unset", unset("c", ""), success, "c", nil},
		{"unset skips a missing one by default", unset("c", ""), success, "c", nil},
		{"unset skip", unset("c", "SKIP"), success, "c", nil},
		{"unset fail on a missing one", unset("c", "Fail"), invalidInput, "c", nil},
		{"unset fail on an existing one", unset("b", "fail"), success, "b", nil},
		{"unknown mode of set", set("a", "6", "Merge"), invalidInput, "a", "3"},
		{"unknown mode of unset", unset("a", "Overwrite"), invalidInput, "a", "3"},
		{"set without a key", obj{"setPropertyAction": obj{"value": "x"}}, invalidInput, "a", "3"},
		{"unset without a key", obj{"unsetPropertyAction": obj{}}, invalidInput, "a", "3"},
	}
	for _, s := range steps {
		a := alter(t, id, s.action)
		if s.code == success {
			if got := a.ok(t).object(t, "properties")[s.key]; got != s.want {
				t.Errorf("%s: answered %s = %v, want %v", s.label, s.key, got, s.want)
			}
		} else {
			a.fails(t, s.code)
		}
		if got := value(s.key); got != s.want {
			t.Errorf("%s: %s = %v, want %v", s.label, s.key, got, s.want)
		}
	}
}

// TestAlterTransactionAllOrNothing: one action that fails leaves the others undone.
func TestAlterTransactionAllOrNothing(t *testing.T) {
	t.Parallel()
	id, _ := committed(t, nil)
	before := transaction(t, id)
	alter(t, id, set("x", "1", ""), unset("absent", "Fail")).fails(t, invalidInput)
	alter(t, id, set("x", "1", ""), set("x", "2", "Fail")).fails(t, conflict)
	alter(t, id, set("x", "1", ""), obj{"setStatusAction": obj{"status": "Resting"}}).fails(t, invalidInput)
	if diff := cmp.Diff(before, transaction(t, id)); diff != "" {
		t.Errorf("transaction after nothing but refusals (-before +after):\n%s", diff)
	}
	both := alter(t, id, set("x", "1", ""), set("y", "2", ""), unset("x", "Fail")).ok(t).object(t, "properties")
	if both["x"] != nil || both["y"] != "2" {
		t.Errorf("properties = %v, want y alone", both)
	}
}

// TestAlterTransactionForm: at least one action, and exactly one kind in each.
func TestAlterTransactionForm(t *testing.T) {
	t.Parallel()
	id, tables := committed(t, nil)
	for label, actions := range map[string]list{
		"none": {}, "no kind": {obj{}}, "null": {nil}, "two kinds": {with(set("a", "1", ""), unset("b", ""))}, "a number": {1},
		"no status": {obj{"setStatusAction": obj{}}}, "unknown status": {obj{"setStatusAction": obj{"status": "Done"}}}, "number as status": {obj{"setStatusAction": obj{"status": 1}}},
	} {
		if a := alter(t, id, actions...); a.code() != invalidInput {
			t.Errorf("%s: %s\n got %s\nwant code 13", label, a.call, a)
		}
	}
	suite.send(t, "AlterTransaction", []string{id}, nil).fails(t, invalidInput)
	alter(t, uuid4(), set("a", "1", "")).fails(t, transactionNotFound)
	allAt(t, tables, 1)
}

// TestAlterTransactionStatus: the words of the specification in any case and style; the versions stay what they are.
func TestAlterTransactionStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"Queued", "running", "SUCCEEDED", "Failed", "canceled"} {
		id, tables := committed(t, nil)
		got := alter(t, id, obj{"setStatusAction": obj{"status": status}}).ok(t).str(t, "status")
		if !strings.EqualFold(got, status) || !strings.EqualFold(transaction(t, id).str(t, "status"), status) {
			t.Errorf("status = %s, want %s", got, status)
		}
		allAt(t, tables, 1)
	}
}
