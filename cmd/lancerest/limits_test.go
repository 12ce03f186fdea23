package main

import (
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/app"
)

// parse reads a command line of `lancerest serve` as main does.
func parse(args ...string) (serveCommand, error) {
	var c commands
	parser, err := kong.New(&c)
	if err != nil {
		return serveCommand{}, err
	}
	_, err = parser.Parse(append([]string{"serve"}, args...))
	return c.Serve, err
}

// TestLimitsDefault holds the defaults of the flags to those of the server: whoever gives none gets the same either way.
func TestLimitsDefault(t *testing.T) {
	t.Parallel()
	serve, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	got, want := serve.config(), app.Defaults()
	got.MaxBatch, got.StagedKeep, got.Version, want.Logger = 0, 0, "", nil
	got.Data, got.Root = want.Data, want.Root // the flags' default is the same directory, spelt otherwise
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a server without flags (-want +got):\n%s", diff)
	}
	if serve.Limits.Batch != 10_000 || serve.StagedKeep != 10*time.Second {
		t.Errorf("batch %d, staged manifests kept for %s: want the catalog's 10,000 and 10 s", serve.Limits.Batch, serve.StagedKeep)
	}
}

// TestLimitsGiven holds each flag to the field that it sets.
func TestLimitsGiven(t *testing.T) {
	t.Parallel()
	serve, err := parse("--limits-body=1KiB", "--limits-header=8KiB", "--limits-batch=3", "--limits-bodies=2KiB", "--limits-queue-time=12s", "--limits-concurrent=4", "--limits-queue=5", "--limits-body-time=6s",
		"--limits-read-time=7s", "--limits-write-time=8s", "--limits-idle-time=9m", "--limits-drain-time=10s", "--staged-keep=11s", "--reconcile=13s", "--insecure",
		"--engine=off", "--engine-python=py", "--engine-workers=3", "--engine-memory=2GiB", "--engine-catalog-url=http://c", "--databases=namespace")
	if err != nil {
		t.Fatal(err)
	}
	want := app.Config{
		Data: serve.Data, Listen: "127.0.0.1:2333", Insecure: true, Version: version(), MaxBatch: 3, HeaderMax: 8 << 10, IdleTime: 9 * time.Minute,
		Drain: 10 * time.Second, StagedKeep: 11 * time.Second, Reconcile: 13 * time.Second,
	}
	want.StatePool = app.Defaults().StatePool
	want.Databases = "namespace"
	want.Engine = app.Engine{Kind: app.EngineOff, Python: "py", Workers: 3, Memory: 2 << 30, URL: "http://c"}
	want.Limits.Body, want.Limits.Concurrent, want.Limits.QueueLength = 1<<10, 4, 5
	want.Limits.Bodies, want.Limits.QueueTime = 2<<10, 12*time.Second
	want.Limits.BodyTime, want.Limits.ReadTime, want.Limits.WriteTime = 6*time.Second, 7*time.Second, 8*time.Second
	if diff := cmp.Diff(want, serve.config()); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

// TestLimitsRefused holds that a value which makes no sense is refused by name before anything is opened.
func TestLimitsRefused(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"body", "header", "batch", "concurrent", "queue", "body-time", "read-time", "write-time", "idle-time", "drain-time"} {
		for _, value := range []string{"0", "-1", "x"} {
			_, err := parse("--limits-" + flag + "=" + value)
			if err == nil || !strings.Contains(err.Error(), "--limits-"+flag) {
				t.Errorf("--limits-%s=%s: error %v, want one that names the flag", flag, value, err)
			}
		}
	}
	for _, arg := range []string{"--limits-header=4GiB", "--staged-keep=0s", "--limits-body=9223372036854775807KiB"} {
		flag, _, _ := strings.Cut(arg, "=")
		if _, err := parse(arg); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: error %v, want one that names the flag", arg, err)
		}
	}
}

// TestByteSize holds sizes to one way to read and to write them.
func TestByteSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]byteSize{"0": 0, "512": 512, "64KiB": 64 << 10, "32MiB": 32 << 20, "2GiB": 2 << 30, "1025": 1025} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want || got.String() != text {
			t.Errorf("%q is read as %d and written as %q (%v), want %d", text, int64(got), got, err, int64(want))
		}
	}
	for _, text := range []string{"", "KiB", "1.5MiB", "-1", "1MB", "1 MiB", "8589934592GiB", "1kib"} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "such as 32MiB") {
			t.Errorf("%q is read as %d, %v; want an error that says how a size is written", text, int64(got), err)
		}
	}
}

// TestOTLP holds where traces go to OpenTelemetry's rule: the base gets a path, the URL of traces alone stands as it is and wins.
func TestOTLP(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given otlp
		want  string
	}{
		{otlp{}, ""},
		{otlp{Endpoint: "http://c:4318"}, "http://c:4318/v1/traces"},
		{otlp{Endpoint: "http://c:4318/otel/"}, "http://c:4318/otel/v1/traces"},
		{otlp{TracesEndpoint: "https://c/here"}, "https://c/here"},
		{otlp{Endpoint: "http://c:4318", TracesEndpoint: "https://c/here"}, "https://c/here"},
	} {
		if got := c.given.url(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.given, got, c.want)
		}
	}
}
