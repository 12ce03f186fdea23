// Command withgcs runs a command beside a throw-away emulator of Google Cloud Storage with an empty bucket, which it and its children find in
// STORAGE_EMULATOR_HOST, as all of Google's clients do, and in LANCEREST_TEST_GCS_BUCKET.
//
//	go run ./test/withgcs make quickstart
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/lancerest/lancerest/internal/objstore/gcs/gcstest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "withgcs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say what to run, such as: withgcs go test ./internal/catalog")
	}
	server, err := gcstest.Open(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	bucket, err := server.NewBucket(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(server.Environ(os.Environ()), "LANCEREST_TEST_GCS_BUCKET="+bucket)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
