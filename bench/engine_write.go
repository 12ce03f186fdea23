package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stream is the parts of an Arrow stream, whose batches can stand in it several times.
type stream struct {
	head, batches, end []byte
	row                []byte // a whole stream of one row
	rows               int    // of the batches
}

func readStream(prefix string, rows int) (stream, error) {
	s := stream{rows: rows}
	var errs error
	for name, into := range map[string]*[]byte{"head": &s.head, "batches": &s.batches, "end": &s.end, "row": &s.row} {
		data, err := os.ReadFile(prefix + "." + name)
		*into, errs = data, errors.Join(errs, err)
	}
	return s, errs
}

// writeResult is what a stream of rows gave, written by pylance and through the server.
type writeResult struct {
	mode            string
	pylance, server []time.Duration // by rounds
	bytes           int64           // of the stream
	rows            int
	serverCPU       []time.Duration
	pylanceCPU      []time.Duration
	grown           int64   // most that any process of the server grew by in any round, bytes
	grower          string  // which
	speed           float64 // of the server's to pylance's, the median of the rounds
}

// measureWrites writes the same rows by both sides in turns, each time into a new table, which is removed after.
func (e *engineRun) measureWrites(ctx context.Context, mode string) (writeResult, error) {
	size := int64(len(e.stream.batches))
	times := int(max(1, (e.options.stream+size-1)/size))
	w := writeResult{mode: mode, bytes: int64(times) * size, rows: times * e.stream.rows}
	speeds := []float64{}
	for round := range e.options.rounds {
		for k := range 2 {
			syscall.Sync() // nobody pays for what was written before
			var err error
			if (k+round)%2 == 0 {
				err = e.writeByPylance(&w, times, fmt.Sprint(mode, round))
			} else {
				err = e.writeByServer(ctx, &w, times, fmt.Sprint(mode, round))
			}
			if err != nil {
				return w, fmt.Errorf("%s: %w", mode, err)
			}
		}
		speeds = append(speeds, w.pylance[round].Seconds()/w.server[round].Seconds())
		progress("%s of %d MiB: pylance %.2f s, server %.2f s, grown by %d MiB at most (%s)", mode, w.bytes>>20,
			w.pylance[round].Seconds(), w.server[round].Seconds(), w.grown>>20, w.grower)
	}
	w.speed = median(speeds)
	return w, nil
}

func (e *engineRun) writeByPylance(w *writeResult, times int, name string) error {
	path := filepath.Join(e.dir, "pylance-"+name)
	defer os.RemoveAll(path)
	var a struct{ Elapsed, CPU float64 }
	err := e.pylance.tell(map[string]any{"do": "write", "path": path, "mode": w.mode, "times": times}, &a)
	w.pylance, w.pylanceCPU = append(w.pylance, duration(a.Elapsed)), append(w.pylanceCPU, duration(a.CPU))
	return err
}

func (e *engineRun) writeByServer(ctx context.Context, w *writeResult, times int, name string) error {
	operation, first := "create", name+"-before" // which also starts the workers
	if w.mode == "append" {
		operation, first = "insert", name
	}
	if err := e.send(ctx, "/v1/table/"+first+"/create", rows{e.stream, 0}); err != nil {
		return err
	}
	processes, err := e.server.workers()
	if err != nil {
		return err
	}
	processes = append(processes, e.server)
	for _, p := range processes {
		now := p.forgetPeak()
		if _, seen := e.before[p.cmd.Process.Pid]; !seen {
			e.before[p.cmd.Process.Pid] = now
		}
	}
	used, err := e.cpu()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := e.send(ctx, "/v1/table/"+name+"/"+operation, rows{e.stream, times}); err != nil {
		return err
	}
	w.server = append(w.server, time.Since(begin))
	now, err := e.cpu()
	if err != nil {
		return err
	}
	w.serverCPU = append(w.serverCPU, now-used)
	for _, p := range processes {
		if _, peak := p.memory(); peak-e.before[p.cmd.Process.Pid] > w.grown {
			w.grown, w.grower = peak-e.before[p.cmd.Process.Pid], "a worker"
			if p == e.server {
				w.grower = "the server"
			}
		}
	}
	return e.removeTable(ctx, name, w.rows)
}

// removeTable looks whether a table has the rows that were sent, and removes it with all its data.
func (e *engineRun) removeTable(ctx context.Context, name string, sent int) error {
	count, err := e.ask(ctx, "/v1/table/"+name+"/count_rows")
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(count)); got != fmt.Sprint(sent) && got != fmt.Sprint(sent+1) {
		return fmt.Errorf("table %s has %s rows after %d were sent", name, got, sent)
	}
	var at struct{ Location string }
	text, err := e.ask(ctx, "/v1/table/"+name+"/drop")
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(strings.TrimPrefix(at.Location, "file://"))
}

// forgetPeak begins a new account of the most memory that a process held, and returns what it holds now, in bytes.
func (p *process) forgetPeak() int64 {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0o200)
	now, _ := p.memory()
	return now
}

// rows is a stream that has its batches so many times; with none it is one of a single row.
type rows struct {
	stream
	times int
}

// WriteTo implements io.WriterTo.
func (r rows) WriteTo(w io.Writer) (int64, error) {
	if r.times == 0 {
		n, err := w.Write(r.row)
		return int64(n), err
	}
	n, err := w.Write(r.head)
	total := int64(n)
	for i := 0; i < r.times && err == nil; i++ {
		n, err = w.Write(r.batches)
		total += int64(n)
	}
	if err != nil {
		return total, err
	}
	n, err = w.Write(r.end)
	return total + int64(n), err
}

// sendBuffer is how much is written to a connection at once.
const sendBuffer = 1 << 20

// send posts an Arrow stream, in chunks, as clients do that do not know how long theirs will be.
func (e *engineRun) send(ctx context.Context, target string, body io.WriterTo) error {
	out, in := io.Pipe()
	var writing sync.WaitGroup
	defer writing.Wait()
	defer out.Close()
	writing.Go(func() {
		buffered := bufio.NewWriterSize(in, sendBuffer)
		_, err := body.WriteTo(buffered)
		_ = in.CloseWithError(errors.Join(err, buffered.Flush()))
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+e.address+target, out)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/vnd.apache.arrow.stream")
	_, err = succeed(req, &http.Client{Transport: &http.Transport{WriteBufferSize: sendBuffer, DisableKeepAlives: true}})
	return err
}

// ask posts an empty request.
func (e *engineRun) ask(ctx context.Context, target string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+e.address+target, strings.NewReader("{}"))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return succeed(req, http.DefaultClient)
}

// succeed sends a request whose answer must be a success, and returns its body.
func succeed(req *http.Request, client *http.Client) ([]byte, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %d: %s", req.URL.Path, resp.StatusCode, body)
	}
	return body, err
}
