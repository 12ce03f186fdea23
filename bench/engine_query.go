package main

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"time"
)

// engineClients is with how many clients the throughput is measured.
const engineClients = 8

// queryResult is what queries gave, by ways and numbers of clients.
type queryResult struct {
	pylance, server, sdk [2]summary       // with one client and with engineClients
	load                 [2]time.Duration // processor time of the load generator for one query
	beyond               time.Duration    // how much longer one takes through the server with one client, at the median
	throughput           float64          // of the server's to pylance's
}

// measureQueries has pylance, the server, and the server through LanceDB's SDK answer the same queries, in turns.
func (e *engineRun) measureQueries(ctx context.Context) (*queryResult, error) {
	r := &queryResult{}
	if err := e.warm(ctx); err != nil {
		return nil, err
	}
	for i, clients := range []int{1, engineClients} {
		t, err := e.queryTurns(ctx, clients)
		if err != nil {
			return nil, err
		}
		r.pylance[i], r.server[i], r.sdk[i] = summaryOf(t.cells[0], 1), summaryOf(t.cells[1], 1), summaryOf(t.cells[2], 1)
		r.load[i] = median(t.generator)
		for way, s := range []summary{r.pylance[i], r.server[i], r.sdk[i]} {
			progress("query, %d clients, %-8s %s", clients, []string{"pylance", "server", "SDK"}[way], s)
		}
		if i == 0 {
			r.beyond = median(t.beyond)
		} else {
			r.throughput = ratio(t.cells[1], t.cells[0])
		}
	}
	return r, nil
}

// queryTurns are the rounds of a number of clients.
type queryTurns struct {
	cells             [3][]cell       // by ways
	generator, beyond []time.Duration // as in queryResult, of each round
}

// queryTurns lets the ways take turns, in changing order.
func (e *engineRun) queryTurns(ctx context.Context, clients int) (queryTurns, error) {
	var t queryTurns
	for round := range e.options.rounds {
		for k := range t.cells {
			way := (k + round) % len(t.cells)
			own := ownCPU()
			c, err := e.queryCell(ctx, way, clients, e.options.duration)
			if err != nil {
				return t, err
			}
			t.cells[way] = append(t.cells[way], c)
			if way == 1 {
				t.generator = append(t.generator, (ownCPU()-own)/time.Duration(max(c.requests, 1)))
			}
		}
		t.beyond = append(t.beyond, t.cells[1][round].p50-t.cells[0][round].p50)
	}
	return t, nil
}

// queryCell measures one way: 0 is pylance, 1 the server, 2 the server through LanceDB's SDK. Processor times are those of the server and its
// workers together, or of pylance with its client, which are one process.
func (e *engineRun) queryCell(ctx context.Context, way, clients int, duration time.Duration) (cell, error) {
	switch way {
	case 0:
		return e.pylance.load(map[string]any{"do": "query", "threads": clients, "seconds": duration.Seconds()})
	case 1:
		before, err := e.cpu()
		if err != nil {
			return cell{}, err
		}
		c, err := load(ctx, e.address, e.sources(clients), duration)
		if err != nil {
			return c, err
		}
		after, err := e.cpu()
		c.cpu = after - before
		return c, err
	}
	before, err := e.cpu()
	if err != nil {
		return cell{}, err
	}
	c, err := e.pylance.load(map[string]any{"do": "sdk", "url": "http://" + e.address, "threads": clients, "seconds": duration.Seconds()})
	if err != nil {
		return c, err
	}
	after, err := e.cpu()
	c.cpu = after - before
	return c, err
}

// sources are clients that begin at different places of the list of queries.
func (e *engineRun) sources(clients int) []source {
	sources := make([]source, clients)
	for i := range sources {
		at := i * len(e.queries) / clients
		sources[i] = func() []byte {
			at++
			return e.queries[at%len(e.queries)]
		}
	}
	return sources
}

// warm has everything loaded that queries need, in all workers.
func (e *engineRun) warm(ctx context.Context) error {
	const long = 3 * time.Second
	for way := range 3 {
		if _, err := e.queryCell(ctx, way, engineClients, long); err != nil {
			return err
		}
	}
	return nil
}

// cpu is the processor time that the server and its workers have used.
func (e *engineRun) cpu() (time.Duration, error) {
	workers, err := e.server.workers()
	used := e.server.cpu()
	for _, w := range workers {
		used += w.cpu()
	}
	return used, err
}

// ownCPU is the processor time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// aloneResult is an operation that needs no worker, measured before there is any.
type aloneResult struct {
	name  string
	given summary
}

// measureAlone measures the operations that must not need a worker. The server starts its workers when the first operation needs one, and
// afterwards there still is none.
func (e *engineRun) measureAlone(ctx context.Context) ([]aloneResult, error) {
	var results []aloneResult
	for _, name := range []string{"count_rows", "stats", "describe"} {
		r := request(http.MethodPost, "/v1/table/"+engineTable+"/"+name, e.address, []byte("{}"))
		sources := make([]source, engineClients)
		for i := range sources {
			sources[i] = func() []byte { return r }
		}
		before := e.server.cpu()
		c, err := load(ctx, e.address, sources, e.options.duration)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.cpu = e.server.cpu() - before
		results = append(results, aloneResult{name, summaryOf([]cell{c}, 1)})
		progress("%s without workers: %s", name, results[len(results)-1].given)
	}
	workers, err := e.server.workers()
	if err == nil && len(workers) > 0 {
		err = fmt.Errorf("%d workers were started for counting and describing", len(workers))
	}
	return results, err
}
