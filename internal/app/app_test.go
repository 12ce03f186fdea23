package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/client"
	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/check"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// within waits for a channel, and fails the test if it takes a minute: something waits that must not.
func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing happened within a minute", what)
		panic("unreachable")
	}
}

// get returns the status and the body of a path.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// TestRunAndStop: a server serves from New on, stops without an error when its context ends, and leaves its address, its state and its
// data to the next.
func TestRunAndStop(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	listen := "127.0.0.1:0"
	for round := range 2 {
		ctx, cancel := context.WithCancel(context.Background())
		a, err := app.New(ctx, app.Config{Data: dir, Listen: listen})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		if status, body := get(t, a.URL()+"/readyz"); status != http.StatusOK {
			t.Errorf("readyz: %d %s", status, body)
		}
		_, err = client.New(a.URL(), client.Options{}).DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At("t")})
		if round == 0 && err != nil || round == 1 && api.CodeOf(err) != api.CodeTableAlreadyExists {
			t.Errorf("round %d: declare: %v", round, err)
		}
		cancel()
		if err := within(t, "Run", ended); err != nil {
			t.Errorf("Run: %v", err)
		}
		for range 2 {
			if err := a.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		listen = strings.TrimPrefix(a.URL(), "http://")
	}
}

// TestCloseBeforeRun: a server that never ran can be closed, twice too, and leaves its address and its state to the next.
func TestCloseBeforeRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		a, err := app.New(context.Background(), app.Config{Data: dir, Listen: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := net.Dial("tcp", strings.TrimPrefix(a.URL(), "http://")); err == nil {
			t.Error("the address still answers")
		}
	}
}

// TestPortInUse: an address that is taken is an error of New, and nothing stays open after it.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	if _, err := app.New(context.Background(), app.Config{Data: dir, Listen: taken.Addr().String()}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("error %v, want that the address is in use", err)
	}
	serve(t, app.Config{Data: dir})
}

// TestConfigRefused: a configuration that makes no sense, or that is not safe, is refused with a sentence that says what would be
// right, before anything is made.
func TestConfigRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config app.Config
		words  []string
	}{
		"all addresses":     {app.Config{Listen: "0.0.0.0:0"}, []string{"0.0.0.0:0", "authentication", "--insecure"}},
		"no host":           {app.Config{Listen: ":0"}, []string{"--insecure"}},
		"IPv6":              {app.Config{Listen: "[::]:0"}, []string{"--insecure"}},
		"a name":            {app.Config{Listen: "catalog.test:0"}, []string{"--insecure"}},
		"another machine's": {app.Config{Listen: "192.0.2.1:0"}, []string{"--insecure"}},
		"no port":           {app.Config{Listen: "127.0.0.1"}, []string{"HOST:PORT"}},
		"short idle time":   {app.Config{IdleTime: time.Minute}, []string{"1m0s", "5m10s", "300 s"}},
		"small heads":       {app.Config{HeaderMax: 100}, []string{"100", "4096"}},
		"negative batch":    {app.Config{MaxBatch: -1}, []string{"-1"}},
		"negative drain":    {app.Config{Drain: -time.Second}, []string{"-1s"}},
		"staged for ever":   {app.Config{StagedKeep: -time.Second}, []string{"-1s"}},
		"two mistakes":      {app.Config{Listen: ":0", HeaderMax: 1}, []string{"--insecure", "4096"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Data = filepath.Join(t.TempDir(), "data")
			a, err := app.New(context.Background(), c.config)
			if err == nil {
				t.Fatal("no error", a.Close())
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
			if _, err := os.Stat(c.config.Data); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the data directory was made: %v", err)
			}
		})
	}
	for _, listen := range []string{"127.0.0.1:0", "127.1.2.3:0", "localhost:0", "[::1]:0"} {
		a, err := app.New(context.Background(), app.Config{Data: t.TempDir(), Listen: listen})
		if err == nil {
			err = a.Close()
		} else if strings.HasPrefix(listen, "[") && !strings.Contains(err.Error(), "--insecure") {
			continue // this machine has no IPv6
		}
		if err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
	a, err := app.New(context.Background(), app.Config{Data: t.TempDir(), Listen: "0.0.0.0:0", Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// TestLaterMistakes: what is found wrong only while the server is put together leaves nothing open either.
func TestLaterMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := app.Config{Data: dir, Listen: "127.0.0.1:0", Traces: "nowhere"}
	if _, err := app.New(context.Background(), bad); err == nil || !strings.Contains(err.Error(), "/v1/traces") {
		t.Errorf("error %v, want one that shows a URL of traces", err)
	}
	bad = app.Config{Data: dir, Listen: "127.0.0.1:0"}
	bad.Limits.Concurrent = -1
	if _, err := app.New(context.Background(), bad); err == nil || !strings.Contains(err.Error(), "concurrent") {
		t.Errorf("error %v, want one about the limit", err)
	}
	serve(t, app.Config{Data: dir})
}

// TestSecondServer: a second server on one data directory is refused with a sentence, and does the first no harm.
func TestSecondServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := serve(t, app.Config{Data: dir})
	_, err := app.New(context.Background(), app.Config{Data: dir, Listen: "127.0.0.1:0"})
	if err == nil || !strings.Contains(err.Error(), "stop that server or choose another directory") || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("error %v, want one that says whose it is and what to do", err)
	}
	if _, err := first.DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At("t")}); err != nil {
		t.Error(err)
	}
}

// hold keeps the state from being written until the returned function is called, as a slow disk would.
func hold(t *testing.T, dir string) func() {
	t.Helper()
	state, err := sqlstore.OpenSQLite(context.Background(), sqlstore.Options{Path: filepath.Join(dir, "catalog.db"), Beside: true})
	if err != nil {
		t.Fatal(err)
	}
	held, release := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- state.Update(context.Background(), func(store.Tx) error {
			close(held)
			<-release
			return nil
		})
	}()
	within(t, "the state's lock", held)
	return func() {
		close(release)
		if err := errors.Join(within(t, "the state", ended), state.Close()); err != nil {
			t.Error(err)
		}
	}
}

// atWork waits until the server has so many operations at work.
func atWork(t *testing.T, url string, n int) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		if _, text := get(t, url+"/metrics"); strings.Contains(text, fmt.Sprintf("\nlancerest_operations_running %d\n", n)) {
			return
		}
	}
	t.Fatalf("there are not %d operations at work after a minute", n)
}

// TestStopWhileACommitIsBlocked: a server that is asked to stop while the state is slow lets the commit end and answers it; whoever comes
// meanwhile is told (case J8, C11).
func TestStopWhileACommitIsBlocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	a, err := app.New(ctx, app.Config{Data: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	c := client.New(a.URL(), client.Options{})
	release := hold(t, dir)
	answered := make(chan error, 1)
	go func() {
		_, err := c.DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At("t")})
		answered <- err
	}()
	atWork(t, a.URL(), 1)
	stop()
	for status := 0; status != http.StatusServiceUnavailable; {
		status, _ = get(t, a.URL()+"/readyz") // the signal takes a moment to arrive
	}
	_, err = c.DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At("u")})
	if api.CodeOf(err) != api.CodeServiceUnavailable {
		t.Errorf("a request during the stop: %v, want code 17", err)
	}
	select {
	case err := <-ended:
		t.Errorf("Run returned (%v) although a commit is under way", err)
	default:
	}
	release()
	if err := within(t, "the commit", answered); err != nil {
		t.Errorf("the commit under way: %v", err)
	}
	if err := within(t, "Run", ended); err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	next := serve(t, app.Config{Data: dir})
	if err := next.TableExists(context.Background(), &api.TableExistsRequest{Target: api.At("t")}); err != nil {
		t.Errorf("the commit that was answered is lost: %v", err)
	}
}

// TestStopDoesNotWaitForEver: a caller that never ends its request holds the stop up for as long as the drain time says, and no longer;
// that it did is an error.
func TestStopDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	a, err := app.New(ctx, app.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", Drain: 50 * time.Millisecond, Engine: app.Engine{Kind: app.EngineOff}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A stream of rows without an engine is read to its end and refused; this one has no end. 100 Continue tells that it is being read.
	fmt.Fprintf(conn, "POST /v1/table/t/insert HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("%q, %v", line, err)
	}
	stop()
	if err := within(t, "Run", ended); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run: %v, want that requests were under way", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// TestMetricsOfAServer: every series that operators are promised is there, and counts.
func TestMetricsOfAServer(t *testing.T) {
	t.Parallel()
	s := serve(t, app.Config{Data: t.TempDir()})
	if _, err := s.DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At("t")}); err != nil {
		t.Fatal(err)
	}
	s.commit(t, "t", 1)
	s.commit(t, "t", 2)
	_, text := get(t, s.url+"/metrics")
	for _, want := range []string{
		"lancerest_commits_total 2", "lancerest_versions_total 2", "lancerest_conflicts_total 0", "lancerest_replays_total 0", "lancerest_helps_total 0",
		"lancerest_adoptions_total 0", "lancerest_aborts_total 0", "lancerest_pruned_total 0", "lancerest_removed_objects_total 0",
		"lancerest_state_groups_total ", "lancerest_state_updates_total ", "lancerest_transactions_pending 0", "lancerest_jobs_waiting 0",
		"lancerest_operations_running 0", "lancerest_operations_queued 0",
		`lancerest_request_duration_seconds_count{code="ok",operation="CreateTableVersion"} 2`, "process_resident_memory_bytes ", "go_goroutines ",
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestCheckBesideAServer: a check works while a server runs, changes nothing unless asked to, and what it mends the server sees.
func TestCheckBesideAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, app.Config{Data: dir})
	ctx := context.Background()
	if _, err := s.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At("t")}); err != nil {
		t.Fatal(err)
	}
	for v := range int64(3) {
		s.commit(t, "t", v+1)
	}
	checked := func(repair bool) (check.Summary, []check.Finding) {
		t.Helper()
		var found []check.Finding
		sum, err := app.Check(ctx, app.Config{Data: dir}, check.Options{
			Repair: repair, StagedAge: time.Hour, Report: func(f check.Finding) { found = append(found, f) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return sum, found
	}
	if sum, found := checked(true); sum != (check.Summary{Tables: 1, Versions: 3}) {
		t.Fatalf("%+v, %+v; want one table with three versions and nothing found", sum, found)
	}
	first, err := s.DescribeTableVersion(ctx, &api.DescribeTableVersionRequest{Target: api.At("t"), Version: new(int64(1))})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove("/" + first.Version.ManifestPath); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if sum, found := checked(false); sum.Wrong != 1 || found[0].Kind != check.Missing {
			t.Errorf("%+v, %+v; want one version missing", sum, found)
		}
	}
	if sum, found := checked(true); sum.Mended != 1 || sum.Wrong != 0 {
		t.Errorf("%+v, %+v; want it mended", sum, found)
	}
	if sum, found := checked(false); sum.Wrong != 0 || sum.Versions != 2 {
		t.Errorf("%+v, %+v; want nothing found", sum, found)
	}
	s.commit(t, "t", 4)
	_, err = s.DescribeTableVersion(ctx, &api.DescribeTableVersionRequest{Target: api.At("t"), Version: new(int64(1))})
	if api.CodeOf(err) != api.CodeTableVersionNotFound {
		t.Errorf("version 1: %v, want code 11", err)
	}
}

// TestCheckOfNothing: a check where there is no catalog is an error, and makes none.
func TestCheckOfNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := app.Check(context.Background(), app.Config{Data: dir}, check.Options{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v, want one that names the directory", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
}

// TestReadinessNamesComponents: readiness names its components, as a monitor reads them (case C11).
func TestReadinessNamesComponents(t *testing.T) {
	t.Parallel()
	s := serve(t, app.Config{Data: t.TempDir()})
	status, body := get(t, s.url+"/readyz")
	var told struct {
		Ready      bool
		Components map[string]string
	}
	if err := json.Unmarshal([]byte(body), &told); err != nil || status != http.StatusOK || !told.Ready {
		t.Fatalf("%d %s, %v", status, body, err)
	}
	for _, component := range []string{"state", "storage", "serving"} {
		if told.Components[component] != "ok" {
			t.Errorf("component %s is %q, want ok", component, told.Components[component])
		}
	}
}
