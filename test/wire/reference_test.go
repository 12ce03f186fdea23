package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files that hold what was measured, and the document made of them.
const (
	answersFile  = "testdata/reference-answers.json"
	failuresFile = "testdata/reference-failures.txt"
	documentFile = "../../docs/reference-differences.md"
	// recordVariable names the file in which a run on the reference server leaves its answers to the differences.
	recordVariable = "LANCEREST_WIRE_RECORD"
)

// measured are the two answers to one request.
type measured struct {
	Request   string `json:"request"`
	Lancerest string `json:"lancerest"`
	Reference string `json:"reference"`
}

// TestDifferences puts every request of the list of differences to the server and compares its answer with the one on record,
// so that the document stays true of this catalog.
func TestDifferences(t *testing.T) {
	t.Parallel()
	got := measure(t)
	if record := os.Getenv(recordVariable); record != "" {
		if err := os.WriteFile(record, marshal(t, got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, m := range readAnswers(t) {
		if got[m.Request] != m.Lancerest && !*update {
			t.Errorf("%s: %s, on record: %s\n(-run Reference -update writes the record anew)", m.Request, got[m.Request], m.Lancerest)
		}
	}
}

// measure asks the server everything in the list of differences.
func measure(t *testing.T) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, d := range differences() {
		got[d.request] = d.render(t, d.ask(t))
	}
	return got
}

// TestReference holds the document to the record, and where a Python with pylance is at hand (LANCEREST_PYTHON) runs the whole
// suite on the reference server and holds the record to what that one does today.
func TestReference(t *testing.T) {
	t.Parallel()
	if *update {
		rewrite(t, "Lancerest", measure(t))
	}
	if python := os.Getenv("LANCEREST_PYTHON"); python != "" {
		answers, failures := runOnReference(t, python)
		if *update {
			rewrite(t, "Reference", answers)
			writeFile(t, failuresFile, []byte(strings.Join(failures, "\n")+"\n"))
		}
		compareWithRecord(t, answers, failures)
	}
	document := renderDocument(t, readAnswers(t), readFailures(t))
	if *update {
		writeFile(t, documentFile, []byte(document))
	}
	if diff := cmp.Diff(document, string(mustRead(t, documentFile))); diff != "" {
		t.Errorf("docs/reference-differences.md is not what -update would write (-want +got):\n%s", diff)
	}
}

// racing are the tests whose outcome on the reference server depends on luck. They are not recorded.
const racing = "^(TestReference|TestRacingBatches|TestConcurrentWriters|TestOneDeclareWins|TestOneWins|TestDeclareDropRace|TestDropWhileWriting)$" +
	"|^TestStagedPaths$/^main's_directory_for_a_branch$" // it sometimes looks for the table's data before it looks at the path

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// referenceRuns bounds how often the reference server is tried: now and then it fails a request that only prepares the ground for
// another, and then there is nothing to compare.
const referenceRuns = 3

// runOnReference returns what the reference server answers to the differences and the names of the tests that fail there.
func runOnReference(t *testing.T, python string) (answers map[string]string, failures []string) {
	t.Helper()
	for range referenceRuns {
		var broken string
		if answers, failures, broken = tryOnReference(t, python); broken == "" {
			return answers, failures
		}
		t.Logf("the differences could not be measured on the reference server: %s", broken)
	}
	t.Fatalf("the differences could not be measured on the reference server in %d runs", referenceRuns)
	return nil, nil
}

// tryOnReference starts the reference server and runs this very test binary on it, one test at a time. broken says why there are no
// answers.
func tryOnReference(t *testing.T, python string) (answers map[string]string, failures []string, broken string) {
	t.Helper()
	server := exec.Command(python, "reference.py", filepath.Join(t.TempDir(), "root"))
	stdin, err := server.StdinPipe() // it serves until this closes
	if err != nil {
		t.Fatal(err)
	}
	p, err := launch(server, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stdin.Close()
		_ = server.Wait()
	}()
	record := filepath.Join(t.TempDir(), "answers.json")
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.parallel=1", "-test.skip="+racing)
	run.Env = append(os.Environ(), "LANCEREST_URL="+p.base, recordVariable+"="+record, "LANCEREST_PYTHON=")
	out, err := run.CombinedOutput()
	if err == nil {
		t.Fatal("the whole suite passes on the reference server: then docs/reference-differences.md has no reason to be")
	}
	if bytes.Contains(out, []byte("panic:")) {
		t.Fatalf("the suite broke off:\n%s", out)
	}
	if _, err := os.Stat(record); err != nil {
		return nil, nil, failureOf("TestDifferences", out)
	}
	if err := json.Unmarshal(mustRead(t, record), &answers); err != nil {
		t.Fatal(err)
	}
	for _, m := range failed.FindAllSubmatch(out, -1) {
		failures = append(failures, string(m[1]))
	}
	return answers, leaves(failures), ""
}

// failureOf returns what a test of a verbose run said, up to where the next test begins.
func failureOf(test string, out []byte) string {
	from := bytes.Index(out, []byte("--- FAIL: "+test+" "))
	if from < 0 {
		return "it never ran:\n" + string(out[max(0, len(out)-2000):])
	}
	said := out[from:]
	if end := bytes.Index(said[1:], []byte("\n=== ")); end >= 0 {
		said = said[:end+1]
	}
	return string(said)
}

// leaves removes the names of tests that failed only because a subtest did, and sorts the rest.
func leaves(names []string) []string {
	sort.Strings(names)
	var out []string
	for i, name := range names {
		if i+1 < len(names) && strings.HasPrefix(names[i+1], name+"/") {
			continue
		}
		out = append(out, name)
	}
	return out
}

// compareWithRecord fails the test where the reference server does otherwise than recorded.
func compareWithRecord(t *testing.T, answers map[string]string, failures []string) {
	t.Helper()
	for _, m := range readAnswers(t) {
		if got := answers[m.Request]; got != m.Reference {
			t.Errorf("%s: the reference answers %s, on record: %s", m.Request, got, m.Reference)
		}
	}
	if diff := cmp.Diff(readFailures(t), failures); diff != "" {
		t.Errorf("tests that fail on the reference server (-record +now):\n%s", diff)
	}
}

func readAnswers(t *testing.T) []measured {
	t.Helper()
	b, err := os.ReadFile(answersFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var all []measured
	if len(b) > 0 {
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatalf("%s: %v", answersFile, err)
		}
	}
	return all
}

func readFailures(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(failuresFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// rewrite replaces one column of the record and keeps the other.
func rewrite(t *testing.T, column string, answers map[string]string) {
	t.Helper()
	known := map[string]measured{}
	for _, m := range readAnswers(t) {
		known[m.Request] = m
	}
	var all []measured
	for _, d := range differences() {
		m := known[d.request]
		m.Request = d.request
		if column == "Lancerest" {
			m.Lancerest = answers[d.request]
		} else {
			m.Reference = answers[d.request]
		}
		all = append(all, m)
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, answersFile, append(b, '\n'))
}

// renderDocument makes docs/reference-differences.md.
func renderDocument(t *testing.T, answers []measured, failures []string) string {
	t.Helper()
	known := map[string]measured{}
	for _, m := range answers {
		known[m.Request] = m
	}
	var b strings.Builder
	b.WriteString(documentHead)
	section := ""
	for _, d := range differences() {
		if d.section != section {
			section = d.section
			fmt.Fprintf(&b, "\n## %s\n\n| Request | Lancerest | Reference | Right | Why |\n|---|---|---|---|---|\n", section)
		}
		m := known[d.request]
		if m.Lancerest == m.Reference && !*update {
			t.Errorf("%s: both answer %s, so it is no difference", d.request, m.Lancerest)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", d.request, m.Lancerest, m.Reference, d.right, d.why)
	}
	b.WriteString(documentTail)
	b.WriteString(renderFailures(failures))
	return b.String()
}

// fewSubtests is how many failing subtests of one test the document names; more are counted.
const fewSubtests = 5

// renderFailures lists the tests that fail on the reference server, the subtests of each together.
func renderFailures(names []string) string {
	var order []string
	subtests := map[string][]string{}
	for _, name := range names {
		test, sub, isSub := strings.Cut(name, "/")
		if len(order) == 0 || order[len(order)-1] != test {
			order = append(order, test)
		}
		if isSub {
			subtests[test] = append(subtests[test], strings.ReplaceAll(sub, "_", " "))
		}
	}
	var b strings.Builder
	for _, test := range order {
		switch subs := subtests[test]; {
		case len(subs) == 0:
			fmt.Fprintf(&b, "* `%s`\n", test)
		case len(subs) <= fewSubtests:
			fmt.Fprintf(&b, "* `%s`: %s\n", test, strings.Join(subs, "; "))
		default:
			fmt.Fprintf(&b, "* `%s`: %d cases\n", test, len(subs))
		}
	}
	return b.String()
}

const documentHead = `# Where the reference server differs

The reference server is ` + "`lance.namespace.RestAdapter(\"dir\", …)`" + ` of pylance 14.0.2, with ` + "`table_version_tracking_enabled`" + `: a REST face on a
directory catalog. Every answer below is measured by ` + "`test/wire`" + `, which puts the same requests to both servers; this file is
written by

    LANCEREST_PYTHON=python3 go test ./test/wire -run Reference -update

and the tests fail when either server no longer answers as it says here. "200" and the like are HTTP statuses, codes are those
of the specification's error object. "Right" names the server whose answer the specification or the field's clients ask for.

One difference depends on luck and is not in the tables: of a hundred callers that declare one name at once, the reference tells
most of the losers code 5 (the table exists) and some code 14 (concurrent modification). Here all 99 learn code 5.
`

const documentTail = `
## The whole suite on the reference server

These tests of ` + "`test/wire`" + ` fail there, for the reasons above, because an operation that they need is not implemented there, or because
the specification leaves open what they hold this catalog to.

`
