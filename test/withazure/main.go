// Command withazure runs a command beside a throw-away emulator of Azure Blob Storage with an empty container, which it and its children find in
// the variables that every client of Lance reads (AZURE_STORAGE_ACCOUNT_NAME and so on), and in LANCEREST_TEST_AZURE_CONTAINER.
//
//	go run ./test/withazure make quickstart
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/lancerest/lancerest/internal/objstore/azure/azuretest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "withazure:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say what to run, such as: withazure go test ./internal/catalog")
	}
	server, err := azuretest.Open(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	container, err := server.NewContainer(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(server.Environ(os.Environ()), "LANCEREST_TEST_AZURE_CONTAINER="+container)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
