package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"

	"github.com/lancerest/lancerest/internal/app"
)

// The server has no port for profiles. To take them, this program starts itself again as the server: the same app, with a
// standard input that says when to record what.

// profiledServer is the first argument of such a process; the second is its data directory.
const profiledServer = "serve-profiled"

// serveProfiled serves until standard input closes. Each line there names a file: a CPU profile goes to it until the next
// line, which ends it and, unless it is empty, begins another. What was allocated up to then goes to the same name with ".allocs".
func serveProfiled(ctx context.Context, data string) error {
	a, err := app.New(ctx, app.Config{Data: data, Listen: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		failed <- record(bufio.NewScanner(os.Stdin))
		stop()
	}()
	fmt.Println("listening on", a.URL())
	err = errors.Join(a.Run(ctx), a.Close())
	select {
	case e := <-failed:
		return errors.Join(err, e)
	default:
		return err
	}
}

func record(lines *bufio.Scanner) error {
	var open *os.File
	end := func() error {
		if open == nil {
			return nil
		}
		pprof.StopCPUProfile()
		allocs, err := os.Create(open.Name() + ".allocs")
		if err != nil {
			return err
		}
		err = errors.Join(pprof.Lookup("allocs").WriteTo(allocs, 0), allocs.Close(), open.Close())
		open = nil
		return err
	}
	for lines.Scan() {
		if err := end(); err != nil {
			return err
		}
		if lines.Text() == "" {
			continue
		}
		var err error
		if open, err = os.Create(lines.Text()); err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(open); err != nil {
			return err
		}
	}
	return errors.Join(lines.Err(), end())
}

// profile loads a server with each operation and leaves a CPU profile and one of allocations for it in o.profile.
func profile(ctx context.Context, o options, dir string, ops []operation) error {
	into, err := filepath.Abs(o.profile)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "data", "tables"), 0o755); err != nil {
		return err
	}
	if err := seed(ctx, dir, o.tables); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, address, err := start(exec.Command(self, profiledServer, filepath.Join(dir, "data")), dir)
	if err != nil {
		return err
	}
	defer p.stop()
	t := &target{label: lancerestLabel, address: address, tables: o.tables, clients: o.clients, fastest: 6000, queues: map[string][]*queue{}, process: p}
	for _, op := range ops {
		sources, err := op.sources(ctx, t, o.duration+warmup)
		if err != nil {
			return err
		}
		if _, err := load(ctx, t.address, sources, warmup); err != nil {
			return err
		}
		file := filepath.Join(into, op.name+".pprof")
		if _, err := fmt.Fprintln(p.input, file); err != nil {
			return err
		}
		before := p.cpu()
		c, err := load(ctx, t.address, sources, o.duration)
		if err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		if _, err := fmt.Fprintln(p.input); err != nil {
			return err
		}
		c.cpu = p.cpu() - before
		progress("%s: %s", file, summaryOf([]cell{c}, op.each))
	}
	return nil
}
