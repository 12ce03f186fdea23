package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestCommitDocumentNamesTests holds the tests that docs/commit.md names to those that exist.
func TestCommitDocumentNamesTests(t *testing.T) {
	t.Parallel()
	code := load(t)
	text, err := os.ReadFile(filepath.Join(code.root, "docs", "commit.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range code.files {
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(f.source, -1) {
			there[m[1]] = f.test
		}
	}
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1)
	if len(named) < 50 {
		t.Errorf("docs/commit.md names %d tests, want one for every step at least", len(named))
	}
	for _, name := range named {
		if !there[name] {
			t.Errorf("docs/commit.md names %s, and there is no such test", name)
		}
	}
}
