//go:build unix

package faults_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// withEngine are the flags of a server that has workers.
func withEngine(t *testing.T, flags ...string) []string {
	t.Helper()
	python := os.Getenv("LANCEREST_PYTHON")
	if python == "" {
		t.Skip("LANCEREST_PYTHON names no Python with pylance")
	}
	return append([]string{"--engine", "auto", "--engine-python", python, "--engine-workers", "1"}, flags...)
}

// fragments is how many inserts a table is made of, each of three rows: a backfill of one commit for each of them takes a while.
const fragments = 40

// fillable makes a table with a computed column that is empty.
func fillable(t *testing.T, p *process, name string) {
	t.Helper()
	rows, err := os.ReadFile("../../internal/engine/enginetest/rows.arrows")
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.CreateTable(t.Context(), &api.CreateTableRequest{Target: api.At(name), ArrowStream: api.ArrowStream{Data: bytes.NewReader(rows)}})
	for i := 1; i < fragments && err == nil; i++ {
		_, err = p.InsertIntoTable(t.Context(), &api.InsertIntoTableRequest{Target: api.At(name), ArrowStream: api.ArrowStream{Data: bytes.NewReader(rows)}})
	}
	if err != nil {
		t.Fatal(err)
	}
	twice := "id * 2"
	_, err = p.AlterTableAddColumns(t.Context(), &api.AlterTableAddColumnsRequest{Target: api.At(name), NewColumns: []api.AddColumnsEntry{{Name: "twice", Computed: &twice}}})
	if err != nil {
		t.Fatal(err)
	}
}

// version is the latest version of a table.
func version(t *testing.T, p *process, name string) int64 {
	t.Helper()
	yes := true
	resp, err := p.DescribeTable(t.Context(), &api.DescribeTableRequest{Target: api.At(name), LoadDetailedMetadata: &yes})
	if err != nil {
		t.Fatal(err)
	}
	return *resp.Version
}

// backfill asks for the column to be filled, with a commit for each fragment.
func backfill(t *testing.T, p *process, name string) string {
	t.Helper()
	one := int64(1)
	resp, err := p.AlterTableBackfillColumns(t.Context(), &api.AlterTableBackfillColumnsRequest{Target: api.At(name), Column: "twice", CommitGranularity: &one})
	if err != nil {
		t.Fatal(err)
	}
	return resp.JobID
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, patience time.Duration, holds func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; {
		if holds() {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	t.Fatalf("%s: not within %s", what, patience)
}

// finished waits until a job has succeeded, and returns its properties.
func finished(t *testing.T, p *process, job string) map[string]string {
	t.Helper()
	var last *api.DescribeTransactionResponse
	eventually(t, "the end of the job", 3*time.Minute, func() bool {
		got, err := p.DescribeTransaction(t.Context(), &api.DescribeTransactionRequest{Target: api.At(job)})
		if err != nil {
			return false
		}
		if last = got; got.Status == api.TransactionFailed || got.Status == api.TransactionCanceled {
			t.Fatalf("the job ended: %+v", got)
		}
		return got.Status == api.TransactionSucceeded
	})
	return last.Properties
}

// allFilled fails the test unless every row of a table has its value.
func allFilled(t *testing.T, p *process, name string) {
	t.Helper()
	where := "twice = id * 2"
	n, err := p.CountTableRows(t.Context(), &api.CountTableRowsRequest{Target: api.At(name), Predicate: &where})
	if err != nil || n != 3*fragments {
		t.Errorf("%d rows are filled, %v, want %d", n, err, 3*fragments)
	}
}

// TestKilledBackfill: a server that is killed in the middle of a backfill goes on with it after its next start; what was committed is not made anew.
func TestKilledBackfill(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data, withEngine(t)...)
	fillable(t, p, "t")
	before := version(t, p, "t")
	job := backfill(t, p, "t")
	eventually(t, "some commits", time.Minute, func() bool { return version(t, p, "t") >= before+3 })
	p.kill(t)
	p = start(t, data, withEngine(t)...)
	if p := finished(t, p, job); p["job.attempts"] != "2" {
		t.Errorf("%s attempts", p["job.attempts"])
	}
	allFilled(t, p, "t")
	if after := version(t, p, "t"); after-before > fragments+4 {
		t.Errorf("%d commits for %d fragments: some were filled twice", after-before, fragments)
	}
	p.stop(t)
	clean(t, data)
}

// TestKilledIndex: an index that a killed server was building is built after its next start, once.
func TestKilledIndex(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data, withEngine(t)...)
	fillable(t, p, "t")
	asked := make(chan error, 1)
	name := "mine"
	go func() {
		_, err := p.CreateTableIndex(context.Background(), &api.CreateTableIndexRequest{Target: api.At("t"), Column: "id", IndexType: "BTREE", Name: &name})
		asked <- err
	}()
	eventually(t, "the begin of a job", time.Minute, func() bool { return working(p) })
	p.kill(t)
	<-asked // whether it got an answer or not
	p = start(t, data, withEngine(t)...)
	eventually(t, "the index", 3*time.Minute, func() bool {
		got, err := p.ListTableIndices(t.Context(), &api.ListTableIndicesRequest{Target: api.At("t")})
		if err != nil || len(got.Indexes) > 1 {
			t.Fatalf("indices: %+v, %v", got, err)
		}
		return len(got.Indexes) == 1 && got.Indexes[0].IndexName == name && !working(p)
	})
	p.stop(t)
	clean(t, data)
}

// working reports whether a server has jobs that have not ended.
func working(p *process) bool {
	resp, err := (&http.Client{Transport: p.http, Timeout: time.Minute}).Post(p.base+"/v1/jobs/list", "application/json", nil)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && bytes.Contains(text, []byte("job_id"))
}

// TestKilledReplica: two servers share the jobs of one state; those of one that is killed are gone on with by the other within about a minute.
func TestKilledReplica(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	data, state := t.TempDir(), cluster.URL()
	flags := withEngine(t, "--state", state)
	one, two := start(t, data, flags...), start(t, data, flags...)
	fillable(t, one, "t")
	before := version(t, one, "t")
	job := backfill(t, one, "t")
	eventually(t, "some commits", time.Minute, func() bool { return version(t, two, "t") >= before+3 })
	one.kill(t) // it has the job: it was asked, and had nothing else to do
	began := time.Now()
	if p := finished(t, two, job); p["job.attempts"] != "2" {
		t.Errorf("%s attempts", p["job.attempts"])
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("it took %s", took)
	}
	allFilled(t, two, "t")
	two.stop(t)
}
