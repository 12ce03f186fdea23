package internal_test

import (
	"path"
	"slices"
	"strings"
)

// folders refuses folders that are named for nothing they know.
func folders(code *tree) []finding {
	vague := []string{"util", "utils", "common", "helper", "helpers", "pkg", "models", "misc", "shared", "lib"}
	return code.find(func(f file) []finding {
		for part := range strings.SplitSeq(f.dir, "/") {
			if slices.Contains(vague, part) {
				return breaks("folder", f.dir, "a folder named %q says nothing: put the code where it is used, or name the folder for what it knows", part)
			}
		}
		return nil
	})
}

// nouns holds that each noun has the same file name in every layer. Tags and branches are objects in storage, so the layers of
// the state do not have them.
func nouns(code *tree) []finding {
	state := []string{"namespace", "table", "version", "transaction"}
	all := append([]string{"tag", "branch"}, state...)
	layers := map[string][]string{
		"api": all, "client": all, "internal/lance": all, "internal/catalog": all,
		"internal/store": state, "internal/store/sqlstore": state, "internal/store/storetest": state,
	}
	var found []finding
	for dir, nouns := range layers {
		for _, noun := range nouns {
			want := path.Join(dir, noun+".go")
			if !slices.ContainsFunc(code.files, func(f file) bool { return f.path == want }) {
				found = append(found, breaks("noun", want, "there is no such file: every layer has the same nouns")...)
			}
		}
	}
	return found
}

// contracts holds that the tests of every implementation call the suite of its contract.
func contracts(code *tree) []finding {
	suites := map[string]string{"internal/store": "storetest", "internal/objstore": "objtest", "internal/access": "accesstest", "internal/engine": "enginetest"}
	var found []finding
	for contract, suite := range suites {
		implementations := map[string]bool{} // folder → its tests call the suite
		for _, f := range code.files {
			if path.Dir(f.dir) == contract && path.Base(f.dir) != suite {
				calls := f.test && strings.Contains(f.source, suite+".Run")
				implementations[f.dir] = implementations[f.dir] || calls
			}
		}
		if len(implementations) == 0 {
			found = append(found, breaks("contract", contract, "no implementation stands under the contract")...)
		}
		for dir, calls := range implementations {
			if !calls {
				found = append(found, breaks("contract", dir, "its tests do not call %s.Run", suite)...)
			}
		}
	}
	return found
}
