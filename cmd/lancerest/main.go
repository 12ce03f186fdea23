// Command lancerest is the catalog server for Lance tables and what goes with it; one file a subcommand.
//
// What does not live here: anything a command does. It stands in package app, which takes the flags as a struct.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

//go:generate go test -run ConfigurationDocument -update .

type commands struct {
	Serve       serveCommand       `cmd:"" help:"Serve the catalog."`
	Check       checkCommand       `cmd:"" help:"Compare the catalog with storage, and mend what can be mended."`
	Import      importCommand      `cmd:"" help:"Take in datasets and directory catalogs that lie in storage already."`
	ExportDir   exportDirCommand   `cmd:"" help:"Make a directory list the tables, as Lance libraries list one without a catalog."`
	Export      exportCommand      `cmd:"" help:"Write the whole state to the standard output, as lines of JSON."`
	ImportState importStateCommand `cmd:"" help:"Fill an empty state from the standard input, with what export wrote."`
	Engine      engineCommand      `cmd:"" help:"Prepare the engine, which performs the operations on data."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c commands
	parsed := kong.Parse(&c,
		kong.Name("lancerest"),
		kong.Description("A catalog server for Lance tables that commits new versions of many tables in one atomic step."),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.UsageOnError(),
	)
	parsed.FatalIfErrorf(parsed.Run())
}
