package importer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/internal/lance"
)

// A directory catalog without a table of its own (version 1) is a listing: NAME.lance in a directory is the table NAME, and there are no
// namespaces. Tables of a catalog lie under names of their own, so that on a file system they are listed by symbolic links, and on an object
// store, which has none, only where they have the right name already.

// Exported is a table of the catalog.
type Exported struct {
	Path     lance.TableID
	Location string
	Declared bool // it has no data yet
}

// ExportOptions say what to write as a directory, and where. Exists, Tables and Report are required.
type ExportOptions struct {
	Target lance.Location
	// From is the namespace whose tables are listed.
	From lance.NamespaceID
	// DryRun changes nothing.
	DryRun bool
	// Exists says whether there is such a namespace.
	Exists func(context.Context, lance.NamespaceID) (bool, error)
	// Tables are all tables of the catalog. Those of namespaces below From are reported, others are not.
	Tables iter.Seq2[Exported, error]
	Report func(Item)
}

// The statuses of an exported table, beside There, Skipped and Failed.
const (
	Linked    Status = "linked"
	WouldLink Status = "would link"
)

// plainName is what every client of a directory takes for a table's name: LanceDB opens no other.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// Export writes tables as a directory listing. Nothing is copied, and nothing that is there already is changed. The error says why the tables could
// not be read, that there is no such namespace, or why the directory could not be made.
func Export(ctx context.Context, o ExportOptions) (Summary, error) {
	sum := Summary{Tables: map[Status]int{}}
	switch there, err := o.Exists(ctx, o.From); {
	case err != nil:
		return sum, err
	case !there:
		return sum, fmt.Errorf("the catalog has no namespace %s: give one that it has, with slashes between names, or / for its root", strings.Join(o.From, "/"))
	}
	if o.Target.Scheme == "file" && !o.DryRun {
		if err := os.MkdirAll(filepath.FromSlash(o.Target.Path), 0o755); err != nil {
			return sum, fmt.Errorf("make directory: %w", err)
		}
	}
	for t, err := range o.Tables {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return sum, err
		}
		if space := t.Path.Namespace(); len(space) < len(o.From) || !slices.Equal([]string(space[:len(o.From)]), []string(o.From)) {
			continue
		}
		item := o.list(t)
		sum.Found++
		sum.Tables[item.Status]++
		o.Report(item)
	}
	return sum, nil
}

// list makes the listing show one table, or says why it cannot.
func (o ExportOptions) list(t Exported) Item {
	item := Item{Path: t.Path, Location: t.Location, Status: Skipped, Why: o.fault(t)}
	if item.Why != "" {
		return item
	}
	at, err := lance.ParseLocation(t.Location)
	if err != nil {
		item.Why = err.Error()
		return item
	}
	place, err := o.Target.Join(t.Path.Name() + suffix)
	switch {
	case err != nil:
		item.Why = err.Error()
	case place == at:
		item.Status = There
	case at.Covers(o.Target):
		item.Why = "the directory lies inside the table: choose another one"
	case at.Scheme != "file" || place.Scheme != "file":
		item.Why = fmt.Sprintf("it would have to lie at %s: an object store has no links, and tables are not copied", place)
	default:
		o.link(&item, filepath.FromSlash(at.Path), filepath.FromSlash(place.Path))
	}
	return item
}

// fault says why a table can be in no directory listing, "" if it can.
func (o ExportOptions) fault(t Exported) string {
	switch {
	case len(t.Path.Namespace()) > len(o.From):
		return "it is in a namespace of its own, and a directory listing has none: export that to another directory with --from " + strings.Join(t.Path.Namespace(), "/")
	case t.Declared:
		return "it has no data yet: it is only declared"
	case !plainName.MatchString(t.Path.Name()) || len(t.Path.Name()+suffix) > lance.MaxNameBytes:
		return "a directory listing has only names of letters, digits, hyphens, dots and underscores, of at most 249 characters"
	}
	return ""
}

// link makes a symbolic link in the place of a table that lies elsewhere.
func (o ExportOptions) link(item *Item, table, place string) {
	if _, err := os.Stat(filepath.Join(table, lance.VersionsDir)); err != nil {
		item.Why = "its directory holds no versions: " + err.Error()
		return
	}
	if _, err := os.Lstat(filepath.Join(table, deregistered)); err == nil {
		item.Why = "its directory holds " + deregistered + ", for which a listing leaves it out"
		return
	}
	_, err := os.Lstat(place)
	switch there, readErr := os.Readlink(place); {
	case err == nil && readErr == nil && there == table:
		item.Status = There
	case err == nil:
		item.Why = "something else is at " + place
	case !errors.Is(err, fs.ErrNotExist):
		item.Status, item.Why = Failed, err.Error()
	case o.DryRun:
		item.Status = WouldLink
	default:
		item.Status = Linked
		if err := os.Symlink(table, place); err != nil {
			item.Status, item.Why = Failed, err.Error()
		}
	}
}
