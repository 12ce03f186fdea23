// Package internal_test holds the rules of this repository that a compiler does not: which package may import which, where
// things lie, how long they may get, and what must not be written. Each rule is one function that returns what breaks it.
//
// What does not live here: tests of what the code does. They stand beside the code.
package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowed lists every breach of a rule that is meant, as "rule: place", with the reason. An entry that excuses nothing fails
// the test, so that the list never outlives its reasons.
func allowed() map[string]string {
	return map[string]string{
		"variable: cmd/lancerest/version.go release": "the linker sets it in release builds; nothing else does",

		"bool: internal/catalog/page.go closeCursor": "more is what cut returned on the line before, at every call",

		"bool: internal/objstore/local/staged.go stage":  "the two ways to put a file differ only here; the argument has a name at each call",
		"bool: internal/objstore/local/staged.go create": "as stage, which passes it on",
		"bool: test/model/machine.go finish":             "the model's states are marked by bools; a type for each would hide how they combine",

		"nesting: bench/measure.go line":                            "one pass over one line of output",
		"variable: bench/conn.go lengthHeader":                      "bytes.EqualFold takes no constant, and the loop around it is measured",
		"variable: internal/store/storetest/version.go mainChain":   "a chain for subtests; nothing changes it",
		"variable: internal/store/storetest/version.go branchChain": "as mainChain",
		"variable: internal/store/storetest/version.go otherChain":  "as mainChain",
	}
}

// finding is one breach of a rule.
type finding struct {
	rule  string // its name in the allow-list
	place string // the file, or the file and the name in it
	what  string // what is wrong, and what would be right
}

// module is the prefix of the import paths of this repository.
const module = "github.com/lancerest/lancerest/"

// file is one Go file of the repository.
type file struct {
	path   string // from the root of the repository, with slashes
	dir    string
	test   bool // a _test.go file
	suite  bool // a file of a package that exists for tests: a suite, a fixture
	syntax *ast.File
	source string
}

// tree is every Go file of the repository.
type tree struct {
	root  string
	fset  *token.FileSet
	files []file
}

func TestRules(t *testing.T) {
	t.Parallel()
	code := load(t)
	excused := allowed()
	for name, rule := range rules() {
		for _, f := range rule(code) {
			key := f.rule + ": " + f.place
			if _, ok := allowed()[key]; ok {
				delete(excused, key)
				continue
			}
			t.Errorf("%s: %s: %s (%q)", name, f.place, f.what, key)
		}
	}
	for key, reason := range excused {
		t.Errorf("the allow-list excuses %q (%s), and nothing breaks that rule there: remove the entry", key, reason)
	}
}

// rules returns every rule by its name.
func rules() map[string]func(*tree) []finding {
	return map[string]func(*tree) []finding{
		"imports":      imports,
		"owners":       owners,
		"tests":        testImports,
		"dependencies": dependencies,
		"folders":      folders,
		"nouns":        nouns,
		"contracts":    contracts,
		"functions":    functions,
		"files":        fileSizes,
		"packages":     packageSizes,
		"interfaces":   interfaces,
		"state":        packageState,
		"comments":     comments,
		"words":        words,
		"skips":        skips,
		"messages":     messages,
		"codes":        operationCodes,
	}
}

// load parses the repository. Folders that hold no code of ours are passed over.
func load(t *testing.T) *tree {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	code := &tree{root: root, fset: token.NewFileSet()}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(d.Name(), ".") && p != root
		if d.IsDir() && (hidden || d.Name() == "testdata" || d.Name() == "lancerest-data") {
			return filepath.SkipDir
		}
		if d.IsDir() || path.Ext(p) != ".go" {
			return nil
		}
		return code.add(p)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(code.files) < 100 {
		t.Fatalf("found %d Go files under %s: that is not the repository", len(code.files), root)
	}
	return code
}

// add parses one file.
func (c *tree) add(p string) error {
	source, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(c.root, p)
	if err != nil {
		return err
	}
	return c.parse(filepath.ToSlash(rel), source)
}

// parse takes one file with its path from the root.
func (c *tree) parse(rel string, source []byte) error {
	syntax, err := parser.ParseFile(c.fset, rel, source, parser.ParseComments)
	if err != nil {
		return err
	}
	c.files = append(c.files, file{
		path: rel, dir: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), syntax: syntax, source: string(source),
		suite: strings.HasSuffix(path.Dir(rel), "test") || strings.HasPrefix(rel, "test/"),
	})
	return nil
}

// packages returns the files of each folder that has any which are not tests.
func (c *tree) packages() map[string][]file {
	all := map[string][]file{}
	for _, f := range c.files {
		if !f.test {
			all[f.dir] = append(all[f.dir], f)
		}
	}
	return all
}

// line returns the line of a position.
func (c *tree) line(p token.Pos) int { return c.fset.Position(p).Line }

// importsOf returns the import paths of a file.
func importsOf(f file) []string {
	var all []string
	for _, spec := range f.syntax.Imports {
		all = append(all, strings.Trim(spec.Path.Value, `"`))
	}
	return all
}

// find returns the findings of a check on every file.
func (c *tree) find(check func(file) []finding) []finding {
	var all []finding
	for _, f := range c.files {
		all = append(all, check(f)...)
	}
	return all
}

// named is "file name" for the allow-list.
func named(f file, name string) string { return f.path + " " + name }

// breaks makes one finding.
func breaks(rule, place, format string, args ...any) []finding {
	return []finding{{rule: rule, place: place, what: fmt.Sprintf(format, args...)}}
}

// standard reports whether an import path is one of the standard library.
func standard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".")
}

// within reports whether an import path is one of the given ones or lies below one.
func within(p string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return p == prefix || strings.HasPrefix(p, prefix+"/") })
}
