// Command bench loads Lancerest and the reference server, the namespace server that ships in pylance, with the same requests
// on the same machine in the same run, and prints what both of them and the disk below them gave. docs/performance.md holds
// the table of one run.
//
// With -postgres it loads servers whose state is in PostgreSQL instead, beside pgbench; with -engine a server with an engine, beside pylance.
//
// It also loads a second Lancerest that holds many more tables (-large), to show that no cost grows with the catalog, and can take
// profiles of the server's hot paths (-profile). Nothing here is a test: no figure makes a build fail.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	duration  time.Duration
	rounds    int
	clients   int
	tables    int
	large     int
	many      int // tables in the reference server's second catalog
	only      string
	dir       string
	python    string
	reference bool
	update    bool
	profile   string
	postgres  bool
	engine    bool
	vectors   int
	stream    int64
	binary    string
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "duration", 3*time.Second, "how long one operation is measured on one server in one round")
	flags.IntVar(&o.rounds, "rounds", 5, "how often all servers take turns; medians are reported")
	flags.IntVar(&o.clients, "clients", 16, "connections that send at once")
	flags.IntVar(&o.tables, "tables", 1000, "tables in the catalogs that are compared with the reference")
	flags.IntVar(&o.large, "large", 1_000_000, "tables in the large catalog; 0 leaves it out")
	flags.IntVar(&o.many, "reference-large", 1_000_000, "tables in a second catalog of the reference server, which is compared with the large one; 0 leaves it out")
	flags.StringVar(&o.only, "only", "", "operations to measure, separated by commas (default all)")
	flags.StringVar(&o.dir, "dir", "", "directory for all servers' files, on the disk to measure (default a temporary one)")
	flags.StringVar(&o.python, "python", python(), "Python with pylance for the reference server; also LANCEREST_PYTHON")
	skip := flags.Bool("skip-reference", false, "measure only Lancerest")
	flags.BoolVar(&o.update, "update", false, "write the result into docs/performance.md")
	flags.StringVar(&o.profile, "profile", "", "take profiles of the server into this directory instead of comparing")
	flags.BoolVar(&o.postgres, "postgres", false, "measure with the state in new databases of the PostgreSQL cluster that LANCEREST_STATE names, beside pgbench, instead of comparing with the reference")
	flags.BoolVar(&o.engine, "engine", false, "measure the engine beside pylance in one process instead of comparing with the reference")
	flags.IntVar(&o.vectors, "vectors", 1_000_000, "rows of the table that -engine queries")
	flags.Int64Var(&o.stream, "stream", 2<<30, "bytes of the streams that -engine writes")
	flags.StringVar(&o.binary, "binary", "", "server to measure with -engine (default: built from this tree)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.reference = !*skip
	if !o.reference || o.large == 0 || o.many <= o.tables {
		o.many = 0
	}
	if o.rounds < 1 || o.clients < 1 || o.tables < 1 {
		return o, errors.New("-rounds, -clients and -tables must be at least 1")
	}
	if max(o.tables, o.large, o.many) > loadedMost {
		return o, fmt.Errorf("-tables, -large and -reference-large may be at most %d", loadedMost)
	}
	return o, nil
}

func python() string {
	if given := os.Getenv("LANCEREST_PYTHON"); given != "" {
		return given
	}
	return "python3"
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == profiledServer {
		exit(serveProfiled(ctx, os.Args[2]))
	}
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, o)
	}
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run measures what the options ask for. Everything that it starts and writes is gone when it returns.
func run(ctx context.Context, o options) error {
	var chosen []operation
	if !o.engine {
		var err error
		if chosen, err = choose(o.only); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(o.dir, "lancerest-bench-")
	if err != nil {
		return fmt.Errorf("make a directory for the servers: %w", err)
	}
	defer os.RemoveAll(dir)
	if o.profile != "" {
		return profile(ctx, o, dir, chosen)
	}
	var r outcome
	switch {
	case o.postgres:
		r, err = measurePostgres(ctx, o, dir, chosen)
	case o.engine:
		r, err = measureEngine(ctx, o, dir)
	default:
		r, err = measure(ctx, o, dir, chosen)
	}
	if err != nil {
		return err
	}
	fmt.Print(text(r))
	if o.update {
		return writeDocument(r)
	}
	return nil
}

// choose returns the operations named, separated by commas; all for "".
func choose(names string) ([]operation, error) {
	all := operations()
	if names == "" {
		return all, nil
	}
	var chosen []operation
	for name := range strings.SplitSeq(names, ",") {
		found := false
		for _, op := range all {
			if op.name == strings.TrimSpace(name) {
				chosen, found = append(chosen, op), true
			}
		}
		if !found {
			known := make([]string, len(all))
			for i, op := range all {
				known[i] = op.name
			}
			return nil, fmt.Errorf("-only: no operation is called %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
