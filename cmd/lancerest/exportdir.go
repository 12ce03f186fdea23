package main

import (
	"context"
	"fmt"
	"os"

	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/importer"
)

type exportDirCommand struct {
	Target string `arg:"" help:"Directory, made if it is missing, or URI that is to list the tables."`
	From   string `help:"Namespace whose tables are listed, with slashes between names. The default is the root." placeholder:"NAME/NAME"`
	DryRun bool   `help:"Change nothing: say what would be linked, and what would be left out and why."`
	Quiet  bool   `help:"Say only which tables were left out or failed."`
	URI    string `name:"uri" help:"Address of a running server to read from, instead of the state." placeholder:"URL"`
	Data   string `help:"Directory of the catalog's state; servers may run." default:"./lancerest-data" env:"LANCEREST_DATA" placeholder:"DIR"`
	State  string `help:"PostgreSQL database that keeps the state, as given to serve." env:"LANCEREST_STATE" placeholder:"postgres://USER:PASSWORD@HOST/DATABASE"`
}

// Help implements kong.HelpProvider.
func (*exportDirCommand) Help() string {
	return `Whoever opens TARGET with a Lance library, as in lancedb.connect("TARGET"), sees the tables of one namespace. Tables stay where they are
and are never copied: in a directory NAME.lance becomes a symbolic link to where the table lies, and on an object store, which has no links,
only tables that lie at TARGET/NAME.lance already are listed. What was left out is said with the reason. Writers that come this way
go past the catalog, which takes in what they do.

Give it a directory of its own: the link of a table that was dropped or renamed since stays until you remove it.`
}

// Run exports and reports.
func (k *exportDirCommand) Run(ctx context.Context) error {
	sum, err := app.ExportDir(ctx, app.Config{Data: k.Data, State: k.State}, app.ExportDirOptions{
		Target: k.Target, From: namespacePath(k.From), DryRun: k.DryRun, URI: k.URI,
		Report: func(i importer.Item) {
			if !k.Quiet || i.Why != "" {
				fmt.Println(itemLine(i))
			}
		},
	})
	if err != nil {
		return err
	}
	fmt.Printf("found %d%s\n", sum.Found, statuses(sum.Tables))
	if sum.Tables[importer.Failed] > 0 {
		os.Exit(1)
	}
	return nil
}
