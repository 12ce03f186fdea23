package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/lance"
)

// The whole program on two small catalogs: every operation is answered with success, and none of the figures is missing.
func TestSmallRun(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "bench")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), binary,
		"-skip-reference", "-duration=100ms", "-rounds=1", "-clients=2", "-tables=120", "-large=240", "-dir", t.TempDir())
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, op := range operations() {
		figures := regexp.MustCompile(`(?m)^` + op.name + ` +Lancerest(, large)? +[0-9][0-9,.]*/s `)
		if n := len(figures.FindAll(out, -1)); n != 2 {
			t.Errorf("%s has figures of %d servers, want 2:\n%s", op.name, n, out)
		}
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		list []time.Duration
		part float64
		want time.Duration
	}{
		{nil, 0.5, 0}, {hundred[:1], 0.99, 1}, {hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred[:3], 0.5, 2},
	} {
		if got := quantile(c.list, c.part); got != c.want {
			t.Errorf("quantile of %d values at %v = %d, want %d", len(c.list), c.part, got, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	got := []float64{median([]float64(nil)), median([]float64{3}), median([]float64{9, 1, 5}), median([]float64{4, 1, 9, 2})}
	if diff := cmp.Diff([]float64{0, 3, 5, 3}, got); diff != "" {
		t.Errorf("medians (-want +got):\n%s", diff)
	}
}

// Requests are, byte for byte, what pylance 14.0.2 was seen to send.
func TestRequest(t *testing.T) {
	t.Parallel()
	declare := "POST /v1/table/w%24t/declare?delimiter=%24 HTTP/1.1\r\ncontent-type: application/json\r\naccept: */*\r\n" +
		"accept-encoding: gzip\r\nhost: 127.0.0.1:33191\r\ncontent-length: 16\r\n\r\n" + `{"id":["w","t"]}`
	if diff := cmp.Diff(declare, string(request("POST", path("t", "declare"), "127.0.0.1:33191", idBody("t")))); diff != "" {
		t.Errorf("declare (-want +got):\n%s", diff)
	}
	latest := "POST /v1/table/w%24t/version/list?delimiter=%24&limit=1&descending=true HTTP/1.1\r\naccept: */*\r\n" +
		"accept-encoding: gzip\r\nhost: 127.0.0.1:33191\r\n\r\n"
	if diff := cmp.Diff(latest, string(request("POST", path("t", "version/list")+"&limit=1&descending=true", "127.0.0.1:33191", nil))); diff != "" {
		t.Errorf("latest (-want +got):\n%s", diff)
	}
}

// What is staged for a version is a manifest of that version that differs from the real one in nothing else.
func TestNumbered(t *testing.T) {
	t.Parallel()
	want, err := lance.ReadManifest(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []lance.VersionNumber{1, 2, 1000} {
		data, err := numbered(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := lance.ReadManifest(data)
		if err != nil {
			t.Fatal(err)
		}
		want.Version = v
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("version %d (-want +got):\n%s", v, diff)
		}
	}
}

func TestReplaceBetween(t *testing.T) {
	t.Parallel()
	got, err := replaceBetween("before\n[old\n]after\n", "[", "new\n", "]")
	if want := "before\n[new\n]after\n"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := replaceBetween("no marks", "[", "new", "]"); err == nil {
		t.Error("a document without marks was rewritten")
	}
}

// The document has a place for each result.
func TestMarks(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join("..", "docs", "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []outcome{&result{}, &stateResult{}} {
		begin, end := r.marks()
		if _, err := replaceBetween(string(document), begin, "", end); err != nil {
			t.Error(err)
		}
	}
}
