package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/lancerest/lancerest/internal/app"
	"github.com/lancerest/lancerest/internal/check"
)

type checkCommand struct {
	Data      string        `help:"Directory of the catalog's state." default:"./lancerest-data" env:"LANCEREST_DATA" placeholder:"DIR"`
	State     string        `help:"PostgreSQL database that keeps the state, as given to serve." env:"LANCEREST_STATE" placeholder:"postgres://USER:PASSWORD@HOST/DATABASE"`
	Config    string        `help:"File that says more of roots than flags can, as given to serve." env:"LANCEREST_CONFIG" placeholder:"FILE"`
	Root      string        `help:"Where new tables go, as given to serve." env:"LANCEREST_ROOT" placeholder:"ROOT"`
	Allow     []string      `help:"Further root in which tables lie; may be repeated." env:"LANCEREST_ALLOW" placeholder:"ROOT"`
	Repair    bool          `help:"Mend what can be mended without losing anything; otherwise nothing is changed."`
	StagedAge time.Duration `help:"Age from which a staged manifest that nobody needs counts as left over." default:"24h"`
}

// Run compares the catalog with storage, and exits with 1 if anything stays wrong.
func (k *checkCommand) Run(ctx context.Context) error {
	sum, err := app.Check(ctx, app.Config{Data: k.Data, State: k.State, ConfigFile: k.Config, Root: k.Root, Allow: k.Allow, Version: version()}, check.Options{
		Repair: k.Repair, StagedAge: k.StagedAge, Report: report,
	})
	if err != nil {
		return err
	}
	fmt.Printf("checked %d tables with %d versions: %d wrong, %d mended\n", sum.Tables, sum.Versions, sum.Wrong, sum.Mended)
	if sum.Tags+sum.Branches > 0 {
		fmt.Printf("%d tags and %d branches keep %d versions from being deleted\n", sum.Tags, sum.Branches, sum.Pinned)
	}
	if sum.Wrong > 0 {
		os.Exit(1)
	}
	return nil
}

func report(f check.Finding) {
	line := string(f.Kind) + ": "
	if f.Table != "" {
		line += fmt.Sprintf("table %q", f.Table)
		if f.Branch != "" {
			line += fmt.Sprintf(", branch %q", f.Branch)
		}
		if f.Version != 0 {
			line += fmt.Sprintf(", version %d", f.Version)
		}
		line += ": "
	}
	line += f.What
	switch {
	case f.Kind.Note():
		line = "note: " + f.What
	case f.Mended:
		line += "; mended: " + f.Action
	case f.Action != "":
		line += "; --repair would: " + f.Action
	default:
		line += "; a person has to decide what to do"
	}
	fmt.Println(line)
}
