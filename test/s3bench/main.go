// Command s3bench measures commits of tables on S3: a server of this tree on a throw-away S3 server of this machine, and, in turns with its
// commits, the requests of storage that a commit is made of, sent one after another. All is measured again with delays before every request
// of storage, as from a machine that is some way from its object store. docs/performance.md holds one run.
//
//	go run ./test/s3bench
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

// options are the command line.
type options struct {
	rounds int
	tables int
	delay  time.Duration
	update bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.IntVar(&o.rounds, "rounds", 100, "how often everything takes its turn; medians are reported")
	flag.IntVar(&o.tables, "tables", 50, "tables in the large batch")
	flag.DurationVar(&o.delay, "delay", 10*time.Millisecond, "delay before each request of storage in the second part; three times as long in the third")
	flag.BoolVar(&o.update, "update", false, "write the result into docs/performance.md")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "s3bench:", err)
		os.Exit(1)
	}
}

// run measures all parts. Everything that it starts and writes is gone when it returns.
func run(ctx context.Context, o options) (err error) {
	if o.rounds < 1 || o.tables < 2 {
		return errors.New("-rounds must be at least 1, and -tables at least 2")
	}
	storage, err := s3test.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storage.Close()) }()
	dir, err := os.MkdirTemp("", "lancerest-s3bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := build(ctx, dir)
	if err != nil {
		return err
	}
	r := &result{options: o, begun: time.Now()}
	for _, delay := range []time.Duration{0, o.delay, 3 * o.delay} {
		m, err := measure(ctx, o, site{storage: storage, binary: binary, dir: fmt.Sprintf("%s/%s", dir, delay), delay: delay})
		if err != nil {
			return err
		}
		r.parts = append(r.parts, m)
	}
	fmt.Print(r.markdown())
	if o.update {
		return r.writeDocument()
	}
	return nil
}
