//go:build unix

// Command withpostgres runs a command beside a throw-away PostgreSQL cluster, whose address it finds in LANCEREST_STATE: so the suites
// that start servers of their own run on PostgreSQL.
//
//	go run ./test/withpostgres go test ./test/wire
package main

import (
	"context"
	"errors"
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
	if len(args) == 0 {
		return errors.New("say what to run, such as: withpostgres go test ./test/wire")
	}
	cluster, err := pgtest.Open(ctx, pgtest.Options{})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LANCEREST_STATE="+cluster.URL())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return errors.Join(cmd.Run(), cluster.Close())
}
