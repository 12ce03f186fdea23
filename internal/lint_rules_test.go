package internal_test

import (
	"fmt"
	"go/token"
	"strings"
	"testing"
)

// TestRulesFind holds that the rules find what they are for: a rule that finds nothing looks like a clean repository.
func TestRulesFind(t *testing.T) {
	t.Parallel()
	long := func(lines int) string { return "func f() {\n" + strings.Repeat("\t_ = 1\n", lines) + "}\n" }
	for _, c := range []struct {
		want string // rule: place
		path string
		body string
	}{
		{"import: internal/lance/x.go x.example/y", "internal/lance/x.go", `import _ "x.example/y"`},
		{"import: internal/store/x.go github.com/lancerest/lancerest/internal/catalog", "internal/store/x.go", `import _ "github.com/lancerest/lancerest/internal/catalog"`},
		{"import: internal/new", "internal/new/x.go", ""},
		{"owner: internal/catalog/x.go net/http", "internal/catalog/x.go", `import _ "net/http"`},
		{"owner: internal/catalog/x.go log/slog", "internal/catalog/x.go", `import _ "log/slog"`},
		{"owner: internal/app/x.go github.com/lancerest/lancerest/internal/objstore/objtest", "internal/app/x.go", `import _ "github.com/lancerest/lancerest/internal/objstore/objtest"`},
		{"test import: api/x_test.go github.com/stretchr/testify/assert", "api/x_test.go", `import _ "github.com/stretchr/testify/assert"`},
		{"test import: test/wire/x_test.go github.com/lancerest/lancerest/api", "test/wire/x_test.go", `import _ "github.com/lancerest/lancerest/api"`},
		{"folder: internal/util", "internal/util/x.go", ""},
		{"noun: api/tag.go", "api/x.go", ""},
		{"contract: internal/store/newstore", "internal/store/newstore/x.go", ""},
		{"function: api/x.go f", "api/x.go", long(maxFunction)},
		{"nesting: api/x.go f", "api/x.go", "func f() { for { if true { switch { case true: for { } } } } }"},
		{"nesting: api/x.go f", "api/x.go", "func f() { g(func() { for { if true { select { default: if true { } } } } }) }"},
		{"parameters: api/x.go f", "api/x.go", "func f(a, b, c int, d, e, g string) {}"},
		{"bool: api/x.go f", "api/x.go", "func f(a int, b bool) {}"},
		{"bool: api/x.go F", "api/x.go", "func F(b bool) {}"},
		{"file: api/x.go", "api/x.go", strings.Repeat("\n", maxFile)},
		{"package: api", "api/x.go", strings.Repeat("\n", maxPackage)},
		{"interface: api/x.go i", "api/x.go", "type i interface { a(); b(); c(); d(); e(); f(); g(); h(); j() }"},
		{"init: api/x.go", "api/x.go", "func init() {}"},
		{"variable: api/x.go v", "api/x.go", "var v = map[string]int{}"},
		{"package comment: api", "api/x.go", ""},
		{"comment: api/x.go F", "api/x.go", "func F() {}"},
		{"comment: api/x.go M", "api/x.go", "// T is.\ntype T[P any] struct{}\nfunc (*T[P]) M() {}"},
		{"later: api/x.go", "api/x.go", "// " + "TODO: later"},
		{"http.Error: internal/httpapi/x.go", "internal/httpapi/x.go", "func f() { http.Error(w, \"\", 1) }"},
		{"SELECT *: internal/store/sqlstore/x.go", "internal/store/sqlstore/x.go", "const q = `select * from t`"},
		{"error text: internal/store/sqlstore/x.go", "internal/store/sqlstore/x.go", `func f() { strings.Contains(err.Error(), "busy") }`},
		{"skip: api/x_test.go", "api/x_test.go", "func f() { t.Skip() }"},
		{"message: api/x.go", "api/x.go", `func f() { errors.New("failed to open") }`},
		{"message: api/x.go", "api/x.go", `func f() { fmt.Errorf("Open it: %w", err) }`},
		{"codes: internal/catalog/x.go DropTable", "internal/catalog/x.go", "// DropTable drops. Errors: 1, 12 (never).\nfunc (c *Catalog) DropTable() {}"},
	} {
		code := &tree{root: "..", fset: token.NewFileSet()}
		if err := code.parse(c.path, []byte("package x\n\n"+c.body)); err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, rule := range rules() {
			for _, f := range rule(code) {
				got[f.rule+": "+f.place] = true
			}
		}
		if !got[c.want] {
			t.Errorf("no rule finds %q in\n%s\nfound: %s", c.want, c.body, fmt.Sprint(got))
		}
	}
}
