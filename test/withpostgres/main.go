//go:build unix

// Command withpostgres runs a command beside a throw-away PostgreSQL cluster, whose address it finds in LANCEREST_STATE: so the suites
// that start servers of their own run on PostgreSQL. The database's own programs are on its PATH.
//
//	go run ./test/withpostgres go test ./test/wire
//	go run ./test/withpostgres -durable go run ./bench -postgres
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o pgtest.Options
	flags := flag.NewFlagSet("withpostgres", flag.ContinueOnError)
	flags.BoolVar(&o.Durable, "durable", false, "flush to the disk, as for measurements, and keep checkpoints rare")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.Durable {
		o.Settings = map[string]string{"max_wal_size": "4GB", "checkpoint_timeout": "30min"}
	}
	args = flags.Args()
	if len(args) == 0 {
		return errors.New("say what to run, such as: withpostgres go test ./test/wire")
	}
	cluster, err := pgtest.Open(ctx, o)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LANCEREST_STATE="+cluster.URL(), "PATH="+os.Getenv("PATH")+string(os.PathListSeparator)+cluster.Programs())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return errors.Join(cmd.Run(), cluster.Close())
}
