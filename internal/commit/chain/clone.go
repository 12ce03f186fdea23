package chain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// A shallow clone is a table whose manifests name files in another table's directory. Whatever the catalog removes there would be missing in
// the clone, so it notes which tables have files in which, and does not drop a table whose files a live one needs. Versions of the
// source may go: the catalog removes their manifests alone, and the clone has its own.

// BasesOf returns the places beside a table's own in which a manifest says that files of the version lie, in their canonical form. Those of a
// branch lie in the table's own directory.
func BasesOf(data []byte, m lance.Manifest, own lance.Location) []string {
	if (m.ReaderFlags|m.WriterFlags)&lance.FlagBasePaths == 0 {
		return nil
	}
	details, err := lance.ReadDetails(data)
	if err != nil {
		return nil
	}
	var bases []string
	for _, b := range details.BasePaths {
		if at, err := lance.ParseLocation(b.Path); err == nil && !own.Covers(at) {
			bases = append(bases, at.String())
		}
	}
	return bases
}

// clonesMax bounds how many clones of one table are noted.
const clonesMax = 10_000

// cloneKey is where the state has the ith table that was seen to have files in the directory at a location.
func cloneKey(location string, i int) string {
	return "clone/" + strconv.Itoa(i) + "/" + location
}

// NoteClone notes that a table has files in the given places: in the directory of the table that a place belongs to, or in the place itself,
// whose table may be registered later. Errors: 19 (the source has too many clones), and the store's.
func NoteClone(tx store.Tx, clone lance.ObjectID, bases []string) error {
	for _, base := range bases {
		source, err := tx.Claimed(base)
		if err != nil {
			return err
		}
		source = strings.TrimSuffix(source, "/")
		if !strings.HasPrefix(base, source+"/") || source == "" {
			source = base
		}
		if err := noteCloneOf(tx, source, clone); err != nil {
			return err
		}
	}
	return nil
}

func noteCloneOf(tx store.Tx, source string, clone lance.ObjectID) error {
	id := strconv.FormatInt(int64(clone), 10)
	for i := range clonesMax {
		noted, err := tx.Meta(cloneKey(source, i))
		if errors.Is(err, store.ErrNotFound) {
			return tx.InsertMeta(cloneKey(source, i), id)
		}
		if err != nil || noted == id {
			return err
		}
	}
	return api.Errorf(api.CodeInvalidTableState, "the table at %s has %d shallow clones, the most that are kept track of: copy its files to make another", source, clonesMax)
}

// ClonesOf returns the ids, quoted for a message, of live tables that have files at a location. Errors: the store's.
func ClonesOf(r store.Reader, location string) ([]string, error) {
	var names []string
	for i := range clonesMax {
		noted, err := r.Meta(cloneKey(location, i))
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		id, err := strconv.ParseInt(noted, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("a clone of %s is noted as %q", location, noted)
		}
		t, err := r.TableByID(lance.ObjectID(id))
		if err := state.IgnoreNotFound(err); err != nil {
			return nil, err
		}
		if t.State == lance.TableLive && t.ID != 0 {
			names = append(names, strconv.Quote(lance.ShowID(t.Path)))
		}
	}
	return names, nil
}
