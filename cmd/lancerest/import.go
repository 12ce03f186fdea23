package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/importer"
)

type importCommand struct {
	Source    string   `arg:"" help:"Directory or URI (s3://BUCKET/PREFIX) of the datasets, or of one."`
	Into      string   `help:"Namespace that takes the tables, with slashes between names; it is made where it is missing. The default is the root." placeholder:"NAME/NAME"`
	Nested    bool     `help:"Take datasets at any depth, and make namespaces of the directories that lead to them."`
	DryRun    bool     `help:"Change nothing: say what was found, what would be imported, and what would be skipped and why."`
	Unmanaged bool     `help:"Leave the versions of the tables to storage, with the property managed_versioning=false, for writers that go past the catalog."`
	Quiet     bool     `help:"Say only which tables were skipped or failed."`
	URI       string   `name:"uri" help:"Address of a running server to import through, such as http://127.0.0.1:2333; it must allow the source (serve --allow)." placeholder:"URL"`
	Python    string   `help:"Python with pylance, which reads the table of a directory catalog (__manifest)." default:"python3" env:"LANCEREST_PYTHON" placeholder:"PROGRAM"`
	Data      string   `help:"Directory of the catalog's state, made if it is missing, where no server runs." default:"./lancerest-data" env:"LANCEREST_DATA" placeholder:"DIR"`
	State     string   `help:"PostgreSQL database that keeps the state, as given to serve; servers may run." env:"LANCEREST_STATE" placeholder:"postgres://USER:PASSWORD@HOST/DATABASE"`
	Config    string   `help:"File that says more of roots than flags can, as given to serve; also how the source is reached." env:"LANCEREST_CONFIG" placeholder:"FILE"`
	Root      string   `help:"Where new tables go, as given to serve." env:"LANCEREST_ROOT" placeholder:"ROOT"`
	Allow     []string `help:"Further root in which tables lie, such as SOURCE; give it to serve, too. May be repeated." env:"LANCEREST_ALLOW" placeholder:"ROOT"`
}

// Help implements kong.HelpProvider.
func (*importCommand) Help() string {
	return `SOURCE is a directory of NAME.lance datasets, a directory catalog of a Lance library (with or without __manifest), or a tree of datasets
(--nested). Tables stay where they are, with all versions, tags and branches, and no file is written, moved or removed but the
marker of a root that is allowed for the first time. Their locations must lie below a root: --root, --allow or the configuration file.

An import that was broken off goes on where it stopped when it is started again; what the catalog has already is passed over. Where a server
runs on the state, give its address with --uri; a state in PostgreSQL may be used beside servers. The exit code is 1 if a table failed,
which may work again, and 0 where tables were only skipped.`
}

// Run imports and reports.
func (k *importCommand) Run(ctx context.Context) error {
	sum, err := app.Import(ctx, app.Config{Data: k.Data, State: k.State, ConfigFile: k.Config, Root: k.Root, Allow: k.Allow, Version: version()}, app.ImportOptions{
		Source: k.Source, Into: namespacePath(k.Into), Nested: k.Nested, Unmanaged: k.Unmanaged, DryRun: k.DryRun, URI: k.URI, Python: k.Python,
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
	if sum.Found == 0 && !k.Nested {
		fmt.Println("there is no NAME.lance directory and no directory catalog: for datasets further below add --nested")
	}
	if sum.Tables[importer.Failed] > 0 {
		os.Exit(1)
	}
	return nil
}

// namespacePath reads a namespace from the command line, where no name can hold a slash.
func namespacePath(given string) []string {
	return strings.FieldsFunc(given, func(r rune) bool { return r == '/' })
}

// itemLine is the line of a table in a report.
func itemLine(i importer.Item) string {
	line := fmt.Sprintf("%s: %s at %s", i.Status, strings.Join(i.Path, "/"), i.Location)
	if i.Why != "" {
		line += ": " + i.Why
	}
	return line
}

// statuses tells how many tables became what.
func statuses(counts map[importer.Status]int) string {
	text, sep := "", ": "
	for _, s := range []importer.Status{
		importer.Imported, importer.WouldImport, importer.Declared, importer.WouldDecl, importer.Linked, importer.WouldLink, importer.There, importer.Skipped, importer.Failed,
	} {
		if counts[s] > 0 {
			text += fmt.Sprintf("%s%d %s", sep, counts[s], s)
			sep = ", "
		}
	}
	return text
}
