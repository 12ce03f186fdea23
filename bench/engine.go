package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// With -engine a server with workers is measured beside pylance in one process (engine.py), both on the same table: queries, whole streams of
// rows, and what needs no worker.

// engineRun is what the parts of such a run share.
type engineRun struct {
	options options
	dir     string
	server  *process
	address string
	pylance *pylance
	queries [][]byte // requests
	stream  stream
	before  map[int]int64 // bytes of memory that a process of the server held before it was first given a stream
}

// engineTable is the table that queries are about; engine.py has made it.
const engineTable = "vectors"

// engineResult is what one run gave.
type engineResult struct {
	options options
	started time.Time
	took    time.Duration
	machine string
	loads   string
	queries *queryResult // nil where they were not measured
	writes  []writeResult
	alone   []aloneResult
}

// engineParts are what -only can choose from, in the order in which they are measured.
func engineParts() []string { return []string{"alone", "query", "append", "create"} }

// measureEngine measures all parts, or those that are named.
func measureEngine(ctx context.Context, o options, dir string) (*engineResult, error) {
	parts, err := chooseParts(o.only)
	if err != nil {
		return nil, err
	}
	r := &engineResult{options: o, started: time.Now(), machine: machine(), loads: "load " + loadavg()}
	e := &engineRun{options: o, dir: dir, before: map[int]int64{}}
	defer e.stop()
	if err := e.start(ctx); err != nil {
		return nil, err
	}
	progress("made a table of %d vectors in %s", o.vectors, time.Since(r.started).Round(time.Second))
	for _, part := range parts {
		if err := e.part(ctx, r, part); err != nil {
			return nil, fmt.Errorf("%s: %w\nthe server's last words:\n%s", part, err, e.server.said())
		}
	}
	r.loads += " before, " + loadavg() + " after"
	r.took = time.Since(r.started)
	return r, nil
}

// chooseParts returns the parts named, separated by commas; all for "".
func chooseParts(names string) ([]string, error) {
	all := engineParts()
	if names == "" {
		return all, nil
	}
	chosen := strings.Split(names, ",")
	for _, name := range chosen {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("-only: -engine has no part %q; there are %s", name, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(chosen, name) }), nil
}

// part measures one part.
func (e *engineRun) part(ctx context.Context, r *engineResult, name string) (err error) {
	switch name {
	case "alone":
		r.alone, err = e.measureAlone(ctx)
	case "query":
		r.queries, err = e.measureQueries(ctx)
	default:
		var w writeResult
		w, err = e.measureWrites(ctx, name)
		r.writes = append(r.writes, w)
	}
	return err
}

// start starts both sides and makes the table.
func (e *engineRun) start(ctx context.Context) error {
	binary := e.options.binary
	if binary == "" {
		var err error
		if binary, err = build(ctx, e.dir); err != nil {
			return err
		}
	}
	var err error
	e.server, e.address, err = start(exec.Command(binary, "serve", "--data", filepath.Join(e.dir, "data"), "--listen", "127.0.0.1:0",
		"--engine", "auto", "--engine-python", e.options.python), e.dir)
	if err != nil {
		return err
	}
	if e.pylance, err = startPylance(e.options.python, e.dir); err != nil {
		return err
	}
	queries, prefix := filepath.Join(e.dir, "queries"), filepath.Join(e.dir, "stream")
	var made struct {
		Rows int `json:"stream_rows"`
	}
	err = e.pylance.tell(map[string]any{"do": "prepare", "url": "http://" + e.address, "rows": e.options.vectors, "queries": queries, "stream": prefix}, &made)
	if err != nil {
		return err
	}
	if e.stream, err = readStream(prefix, made.Rows); err != nil {
		return err
	}
	e.queries, err = queryRequests(queries, e.address)
	return err
}

func (e *engineRun) stop() {
	if e.pylance != nil {
		e.pylance.stop()
	}
	if e.server != nil {
		e.server.stop()
	}
}

// dimension is that of the vectors.
const dimension = 128

// queryRequests reads vectors and makes requests of them, as a client in any language would write them.
func queryRequests(file, host string) ([][]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var requests [][]byte
	for vector := range slices.Chunk(data, 4*dimension) {
		numbers := make([]float32, dimension)
		for i := range numbers {
			numbers[i] = math.Float32frombits(binary.LittleEndian.Uint32(vector[4*i:]))
		}
		body, err := json.Marshal(map[string]any{
			"k": 10, "vector": map[string]any{"single_vector": numbers}, "columns": map[string]any{"column_names": []string{"id", "_distance"}},
		})
		if err != nil {
			return nil, err
		}
		requests = append(requests, request(http.MethodPost, "/v1/table/"+engineTable+"/query", host, body))
	}
	return requests, nil
}

// workers are the processes that a server has started.
func (p *process) workers() ([]*process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []*process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(p.cmd.Process.Pid) {
			child, err := os.FindProcess(pid)
			if err != nil {
				return nil, err
			}
			found = append(found, &process{cmd: &exec.Cmd{Process: child}})
		}
	}
	return found, nil
}
