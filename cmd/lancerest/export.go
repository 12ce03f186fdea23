package main

import (
	"context"
	"fmt"
	"os"

	"github.com/lancerest/lancerest/internal/app"
)

type exportCommand struct {
	Data  string `help:"Directory of the catalog's state." default:"./lancerest-data" env:"LANCEREST_DATA" placeholder:"DIR"`
	State string `help:"PostgreSQL database that keeps the state, as given to serve." env:"LANCEREST_STATE" placeholder:"postgres://USER:PASSWORD@HOST/DATABASE"`
}

// Help implements kong.HelpProvider.
func (*exportCommand) Help() string {
	return `The lines come from one snapshot, also while servers run; the last one holds a checksum, so that a file that was cut off is known for
one. They hold the catalog's secret, which signs page tokens, and all metadata that callers have stored: keep the file as safe as the
database. Tables' files are not part of it.`
}

// Run writes the state to the standard output.
func (k *exportCommand) Run(ctx context.Context) error {
	rows, err := app.Export(ctx, app.Config{Data: k.Data, State: k.State}, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "exported %d rows\n", rows)
	return nil
}

type importStateCommand struct {
	Data  string `help:"Directory of the catalog's state, made if it is missing." default:"./lancerest-data" env:"LANCEREST_DATA" placeholder:"DIR"`
	State string `help:"PostgreSQL database that is to keep the state, as given to serve." env:"LANCEREST_STATE" placeholder:"postgres://USER:PASSWORD@HOST/DATABASE"`
}

// Help implements kong.HelpProvider.
func (*importStateCommand) Help() string {
	return `The state must be empty: no server has ever run on it. Either everything is imported or nothing, and a file that was cut off or changed is
refused. Locations of tables stay as they are.`
}

// Run fills the state from the standard input.
func (k *importStateCommand) Run(ctx context.Context) error {
	rows, err := app.ImportState(ctx, app.Config{Data: k.Data, State: k.State}, os.Stdin)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "imported %d rows\n", rows)
	return nil
}
