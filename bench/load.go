package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// source gives a client its requests, one after another; nil ends the cell before its time.
type source func() []byte

// cell is what one operation gave on one server in one round.
type cell struct {
	requests int
	elapsed  time.Duration
	p50, p99 time.Duration
	cpu      time.Duration // of the server
}

// rate is how many units a second the cell did, where a request does several.
func (c cell) rate(units int) float64 {
	if c.elapsed <= 0 {
		return 0
	}
	return float64(c.requests*units) / c.elapsed.Seconds()
}

// load lets one client for each source send until the time is over or one of them has nothing left, each as soon as its last answer
// is there. Requests that end after that are not counted. An answer other than 2xx is an error: a failure must not look fast.
func load(ctx context.Context, address string, sources []source, duration time.Duration) (cell, error) {
	conns := make([]*conn, len(sources))
	for i := range conns {
		c, err := dial(address, duration)
		if err != nil {
			return cell{}, err
		}
		defer c.close()
		conns[i] = c
	}
	var stop atomic.Bool
	timer := time.AfterFunc(duration, func() { stop.Store(true) })
	defer timer.Stop()
	took := make([][]time.Duration, len(sources))
	errs := make([]error, len(sources))
	var wg sync.WaitGroup
	var ended atomic.Int64
	begin := time.Now()
	for i := range sources {
		wg.Go(func() {
			took[i], errs[i] = send(conns[i], sources[i], &stop)
			ended.CompareAndSwap(0, int64(time.Since(begin)))
			stop.Store(true)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return cell{}, err
		}
	}
	return summarize(took, time.Duration(ended.Load())), ctx.Err()
}

// send is one client.
func send(c *conn, next source, stop *atomic.Bool) ([]time.Duration, error) {
	took := make([]time.Duration, 0, 1<<16)
	for !stop.Load() {
		r := next()
		if r == nil {
			return took, nil
		}
		begin := time.Now()
		status, body, err := c.do(r)
		if err != nil {
			return nil, err
		}
		if status < 200 || status > 299 {
			return nil, fmt.Errorf("the server answered %d to %.100q: %s", status, r, body)
		}
		took = append(took, time.Since(begin))
	}
	return took, nil
}

func summarize(took [][]time.Duration, elapsed time.Duration) cell {
	all := slices.Concat(took...)
	slices.Sort(all)
	return cell{requests: len(all), elapsed: elapsed, p50: quantile(all, 0.50), p99: quantile(all, 0.99)}
}

// quantile returns the smallest value that at least the given part of a sorted list does not exceed; 0 for an empty list.
func quantile(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(part*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// median returns the middle of a list, 0 for an empty one.
func median[T float64 | time.Duration](values []T) T {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
