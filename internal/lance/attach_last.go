package lance

import "fmt"

// AttachLast is AttachAfter for the last of several detached versions made each upon the one before, when it alone is attached: between
// holds the manifest files of the others, down to the one that was made from version v-1 or from an attached version, in any
// order; others are ignored. The last one's manifest is that of the table with all their changes. Without the others it could not be
// told from which version the first was made, so whether publishing it would undo a version.
//
// What AttachAfter says of numbers holds, and rows that were stamped with a version between are rows of version v. Where each of
// the changes is an append the result is AttachAfter's but for that. Otherwise the transaction in the manifest, which tells of
// the last change only, is replaced by one that stands in for all of them, so that a writer who read an earlier version meets a
// conflict, and never undoes one of them unseen. The fewer kinds of change there are the better that writer fares (see
// standIn). Attaching each version under a number of its own (AttachAfter) keeps the history whole, and is to be preferred.
//
// An append as the last of other changes, with its own transaction: by experiment a stale delete, update, merge_insert or
// compaction brings back rows that the change before it had deleted.
//
// The error is as for AttachAfter. A manifest that is missing wraps ErrUnsupportedManifest.
func AttachLast(data []byte, v VersionNumber, between [][]byte, attached map[VersionNumber]VersionNumber) ([]byte, error) {
	m, err := ReadManifest(data)
	if err != nil {
		return nil, err
	}
	a := attacher{version: v, attached: attached}
	reached, err := a.fold(&m, between)
	if err != nil {
		return nil, err
	}
	if reached = max(reached, readReach(data)); len(a.folded) > 0 && reached > reachAppend {
		a.stand = &standIn{operation: standInFor(reached), read: v - 1, notes: transactionNotes(data)}
	}
	return a.attach(data, m)
}

// fold follows the versions read from m down to one that is no detached version, or an attached one. It notes those between, makes the
// last of them m's version read, and returns how far their changes reach.
func (a *attacher) fold(m *Manifest, between [][]byte) (reach, error) {
	type manifest struct {
		Manifest
		data []byte
	}
	given := map[VersionNumber]manifest{}
	for _, data := range between {
		b, err := ReadManifest(data)
		if err != nil {
			return 0, err
		}
		given[b.Version] = manifest{b, data}
	}
	a.folded = map[VersionNumber]bool{}
	reached := reachAppend
	for m.ReadVersionKnown && m.ReadVersion.Detached() {
		if _, known := a.attached[m.ReadVersion]; known {
			break
		}
		b, found := given[m.ReadVersion]
		if !found || a.folded[b.Version] {
			break // check says what is missing
		}
		if b.Branch != m.Branch {
			return 0, fmt.Errorf("%w: it was made from detached version %d, which is of another branch", ErrUnsupportedManifest, b.Version)
		}
		a.folded[b.Version] = true
		reached = max(reached, readReach(b.data))
		m.ReadVersion, m.ReadVersionKnown = b.ReadVersion, b.ReadVersionKnown
	}
	return reached, nil
}
