// Command withs3 runs a command beside a throw-away S3 server with an empty bucket, which it and its children find in the variables that
// every S3 client reads (AWS_ENDPOINT_URL and so on) and in LANCEREST_TEST_S3_BUCKET: so suites run with their tables on S3.
//
//	go run ./test/withs3 go test ./internal/catalog
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "withs3:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say what to run, such as: withs3 go test ./internal/catalog")
	}
	server, err := s3test.Open(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = server.Environ(os.Environ())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return errors.Join(cmd.Run(), server.Close())
}
