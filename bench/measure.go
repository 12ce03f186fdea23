package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// summary is what one operation gave on one server: medians over the rounds, and how far the rounds lie apart.
type summary struct {
	rate, low, high float64
	p50, p99        time.Duration
	cpu             time.Duration // of the server for one request
	// note stands in place of figures where there are none.
	note string
}

// line is one operation on all servers, in the order of result.labels.
type line struct {
	op      operation
	servers []summary
}

// result is one run.
type result struct {
	options options
	labels  []string
	lines   []line
	started time.Time
	took    time.Duration
	machine string
	loads   string    // on the machine before and after
	syncs   []float64 // of the disk, before each operation and after the last
	notes   []string
}

// warmup precedes each cell: connections are made, caches filled, the other server's last work ends.
const warmup = 300 * time.Millisecond

// measure compares all servers.
func measure(ctx context.Context, o options, dir string, ops []operation) (*result, error) {
	r := &result{options: o, started: time.Now(), machine: machine(), loads: "load " + loadavg()}
	targets, err := r.startAll(ctx, dir)
	defer func() {
		for _, t := range targets {
			t.process.stop()
		}
	}()
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		r.labels = append(r.labels, t.label)
	}
	for _, op := range ops {
		rate, err := syncs(dir, time.Second)
		if err != nil {
			return nil, err
		}
		r.syncs = append(r.syncs, rate)
		l, err := r.line(ctx, op, targets)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.name, err)
		}
		r.lines = append(r.lines, l)
	}
	rate, err := syncs(dir, time.Second)
	r.syncs = append(r.syncs, rate)
	for _, t := range targets {
		now, peak := t.process.memory()
		r.note("%s: %d MiB resident after the load, %d MiB at most", t.label, now>>20, peak>>20)
	}
	r.loads += " before, " + loadavg() + " after"
	r.took = time.Since(r.started)
	return r, err
}

// note keeps a line for the end of the result, and shows it.
func (r *result) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
	progress(format, args...)
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// The labels of the servers.
const (
	lancerestLabel = "Lancerest"
	referenceLabel = "reference"
	largeLabel     = "Lancerest, large"
	manyLabel      = "reference, large"
)

// startAll fills and starts the servers; those that it started it returns with an error too.
func (r *result) startAll(ctx context.Context, dir string) ([]*target, error) {
	o := r.options
	binary, err := build(ctx, dir)
	if err != nil {
		return nil, err
	}
	var targets []*target
	t, err := r.startSeeded(ctx, binary, filepath.Join(dir, "small"), o.tables)
	if err != nil {
		return targets, err
	}
	t.label = lancerestLabel
	targets = append(targets, t)
	if o.reference {
		t, err := r.startFilledReference(ctx, referenceLabel, filepath.Join(dir, "reference"))
		if t != nil {
			targets = append(targets, t)
		}
		if err != nil {
			return targets, err
		}
	}
	if o.many > 0 {
		root := filepath.Join(dir, "reference-large")
		t, err := r.startFilledReference(ctx, manyLabel, root)
		if t != nil {
			targets = append(targets, t)
		}
		if err == nil {
			err = grow(ctx, o, root)
		}
		if err != nil {
			return targets, err
		}
	}
	if o.large > 0 {
		t, err := r.startSeeded(ctx, binary, filepath.Join(dir, "large"), o.large)
		if err != nil {
			return targets, err
		}
		t.label = largeLabel
		targets = append(targets, t)
	}
	return targets, nil
}

// startSeeded loads a catalog and measures how long a server takes from its start to its first answer about a table.
func (r *result) startSeeded(ctx context.Context, binary, dir string, tables int) (*target, error) {
	begin := time.Now()
	if err := os.MkdirAll(filepath.Join(dir, "data", "tables"), 0o755); err != nil {
		return nil, err
	}
	if err := seed(ctx, dir, tables); err != nil {
		return nil, fmt.Errorf("load %d tables: %w", tables, err)
	}
	progress("loaded %d tables in %.1f s", tables, time.Since(begin).Seconds())
	begin = time.Now()
	p, address, err := startLancerest(binary, dir)
	if err != nil {
		return nil, err
	}
	t := &target{
		label: lancerestLabel, address: address, tables: tables, clients: r.options.clients, fastest: 6000, queues: map[string][]*queue{}, process: p,
	}
	table := loaded(tables / 2)
	if _, err := t.call(request(http.MethodPost, path(table, "describe"), t.address, idBody(table))); err != nil {
		p.stop()
		return nil, err
	}
	took := time.Since(begin)
	now, _ := p.memory()
	r.note("with %d tables: %d ms from the start of the process to its first answer, %d MiB resident then", tables, took.Milliseconds(), now>>20)
	return t, nil
}

func (r *result) startFilledReference(ctx context.Context, label, dir string) (*target, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p, address, err := startReference(r.options, dir)
	if err != nil {
		return nil, err
	}
	t := &target{
		label: label, address: address, tables: r.options.tables, clients: r.options.clients, fastest: 600, queues: map[string][]*queue{}, process: p,
	}
	begin := time.Now()
	if err := t.fillThroughTheWire(ctx); err != nil {
		return t, err
	}
	progress("filled the reference server in %.1f s", time.Since(begin).Seconds())
	return t, nil
}

// line measures one operation. The servers take turns, in another order each round, so that a noisy moment of the machine
// does not fall on one of them alone.
func (r *result) line(ctx context.Context, op operation, targets []*target) (line, error) {
	l := line{op: op, servers: make([]summary, len(targets))}
	cells := make([][]cell, len(targets))
	for round := range r.options.rounds {
		for k := range targets {
			i := (k + round) % len(targets)
			t := targets[i]
			if t.isReference() && !op.reference {
				note, err := t.refuses()
				if err != nil {
					return l, err
				}
				l.servers[i].note = note
				continue
			}
			c, err := one(ctx, op, t, r.options.duration)
			if err != nil {
				return l, fmt.Errorf("%s: %w\n%s", t.label, err, t.process.said())
			}
			cells[i] = append(cells[i], c)
		}
	}
	for i := range targets {
		if len(cells[i]) > 0 {
			l.servers[i] = summaryOf(cells[i], op.each)
		}
		progress("%-9s %-17s %s", op.name, targets[i].label, l.servers[i])
	}
	return l, nil
}

// one measures one cell.
func one(ctx context.Context, op operation, t *target, duration time.Duration) (cell, error) {
	sources, err := op.sources(ctx, t, duration+warmup)
	if err != nil {
		return cell{}, err
	}
	if _, err := load(ctx, t.address, sources, warmup); err != nil {
		return cell{}, err
	}
	before := t.process.cpu()
	c, err := load(ctx, t.address, sources, duration)
	c.cpu = t.process.cpu() - before
	return c, err
}

func summaryOf(cells []cell, units int) summary {
	rates := make([]float64, len(cells))
	p50, p99, cpu := make([]time.Duration, len(cells)), make([]time.Duration, len(cells)), make([]time.Duration, len(cells))
	s := summary{}
	for i, c := range cells {
		rates[i], p50[i], p99[i], cpu[i] = c.rate(units), c.p50, c.p99, c.cpu/time.Duration(max(c.requests, 1))
		if i == 0 {
			s.low = rates[i]
		}
		s.low, s.high = min(s.low, rates[i]), max(s.high, rates[i])
	}
	s.rate, s.p50, s.p99, s.cpu = median(rates), median(p50), median(p99), median(cpu)
	return s
}

func (s summary) String() string {
	if s.note != "" || s.rate == 0 {
		return s.note
	}
	return fmt.Sprintf("%s/s (%s to %s), p50 %s, p99 %s, processor %s", number(s.rate), number(s.low), number(s.high), millis(s.p50), millis(s.p99), millis(s.cpu))
}

// machine tells what the figures were measured on.
func machine() string {
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	cores := 0
	for l := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			cores++
		}
	}
	return fmt.Sprintf("%d cores, %s", cores, model)
}

func loadavg() string {
	text, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
