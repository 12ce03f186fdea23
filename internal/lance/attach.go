package lance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrUnsupportedManifest says that a manifest cannot be attached: it demands features, or holds version numbers, that this
// package does not know how to carry over. The catalog answers it with code 19 (C14).
var ErrUnsupportedManifest = errors.New("manifest cannot be attached")

// ErrStaleManifest says that a detached manifest was not made from the version before the one that it is to become. Published
// there it would undo the versions in between; the change has to be made again. The catalog answers it with code 14.
var ErrStaleManifest = errors.New("manifest was made from another version")

// attachableFlags are the features whose part of the manifest is known to hold no version number, or only those that
// AttachVersion changes. The others are left out on purpose: overlays (bit 6) and the fragment reuse index (9, 10) record
// the versions in which they took effect, spilled row lineage (11) keeps version numbers in data files, and the rest is
// reserved or was not tried.
const attachableFlags = FlagDeletionFiles | FlagStableRowIDs | FlagV2Format | FlagTableConfig | FlagBasePaths |
	FlagNoTransactionFiles | FlagCoveringIndexes | FlagMixedDataVersions | FlagNonReusableFieldIDs

// Fields of the messages in which a manifest file holds further version numbers.
const (
	versionSequenceRuns  protowire.Number = 1 // of a fragment's version sequence
	versionRunVersion    protowire.Number = 2
	indexSectionIndices  protowire.Number = 1
	indexName            protowire.Number = 3
	indexDatasetVersion  protowire.Number = 4
	fragmentOverlays     protowire.Number = 11
	manifestFragmentTree protowire.Number = 22
)

// AttachVersion is AttachAfter for a detached manifest that was made from version v-1 itself.
func AttachVersion(data []byte, v VersionNumber) ([]byte, error) { return AttachAfter(data, v, nil) }

// AttachAfter returns the file of a detached manifest with its version number changed to v, so that published under v's name
// it is an ordinary version of its chain (C14). The change is made on the wire: every byte stays that does not hold the
// number, or the length of a message that does. data is not changed, and the result is the same at every call.
//
// attached tells which detached versions stand in the chain as attached ones, and as which. The manifest must have been made
// from version v-1, or from the detached version that was attached as v-1. So a detached version made upon another is attached not in its
// place but after it, each under a number of its own: a writer that commits against v checks for conflicts with the
// transactions of the versions since it read, one a version. AttachLast attaches the last of several alone.
//
// Where a detached manifest carries numbers was found by experiment with pylance 14.0.2:
//
//   - The version field. It becomes v.
//   - With stable row ids each fragment records the versions in which its rows were made and last changed. A writer stamps
//     new rows with the number after the version that it read, so with v where it read v-1. Where it read a detached version d it
//     stamps d+1, detached too; that becomes the number after the one that d was attached as.
//   - An index that was built on a detached version names it as the version it was built from. Lance compares that number with
//     others, so it cannot stay: refused.
//   - A deletion file made on a detached version, and the transaction (its file name and the copy in the manifest's file), name
//     the version that was read. They name files and history, are compared with nothing, and stay.
//
// What the manifest says of the version read is its writer's word: pylance does not check the read_version that its user
// passes against the dataset that it changes. A manifest that does not say it at all is taken: nothing is known against it.
//
// The error is a *CorruptError as from ReadManifest; an *InvalidError where v is not the number of a version in a chain or the
// manifest is not a detached one; wraps ErrStaleManifest; or wraps ErrUnsupportedManifest, naming the feature bits or what
// else is in the way.
func AttachAfter(data []byte, v VersionNumber, attached map[VersionNumber]VersionNumber) ([]byte, error) {
	m, err := ReadManifest(data)
	if err != nil {
		return nil, err
	}
	return attacher{version: v, attached: attached}.attach(data, m)
}

// attach is AttachAfter for a manifest that was read already.
func (a attacher) attach(data []byte, m Manifest) ([]byte, error) {
	if err := a.check(m); err != nil {
		return nil, err
	}
	message, at, err := manifestMessage(data)
	if err != nil {
		return nil, err
	}
	if err := checkIndexVersions(data[:at], message); err != nil {
		return nil, err
	}
	return rewriteManifest(data, a.manifest, a.stand)
}

// rewriteManifest returns a manifest file with its message edited, and its transaction replaced unless stand is nil. The sections
// before the message and the footer's format stay.
func rewriteManifest(data []byte, edit func(out []byte, f protoField) ([]byte, error), stand *standIn) ([]byte, error) {
	message, at, err := manifestMessage(data)
	if err != nil {
		return nil, err
	}
	sections := data[:at]
	patched, err := rewriteProto(message, edit)
	if err == nil && stand != nil {
		sections, patched, err = stand.put(sections, patched)
	}
	if err != nil {
		return nil, attachError(err)
	}
	if len(patched) > math.MaxUint32 {
		return nil, fmt.Errorf("%w: its message would have %d bytes", ErrUnsupportedManifest, len(patched))
	}
	out := make([]byte, 0, len(sections)+manifestLengthBytes+len(patched)+manifestFooterBytes)
	out = append(out, sections...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(patched)))
	out = append(out, patched...)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(sections)))
	return append(out, data[len(data)-manifestFooterBytes+manifestPositionBytes:]...), nil
}

// attachError leaves a refusal as it is and calls anything else a corrupt manifest.
func attachError(err error) error {
	if errors.Is(err, ErrUnsupportedManifest) {
		return err
	}
	return corrupt("manifest", "%v", err)
}

// attacher checks a detached manifest and edits the messages in it that hold version numbers. The methods that edit are
// arguments of rewriteProto.
type attacher struct {
	version  VersionNumber
	attached map[VersionNumber]VersionNumber
	// folded are the detached versions before it that become part of the version (AttachLast).
	folded map[VersionNumber]bool
	// stand takes the place of the manifest's transaction, unless nil.
	stand *standIn
}

// check reports whether the manifest may become the version at all.
func (a attacher) check(m Manifest) error {
	if a.version <= 0 {
		return &InvalidError{What: fmt.Sprintf("version %d", a.version), Why: "cannot be given to a manifest: it must be at least 1"}
	}
	if !m.Version.Detached() {
		return &InvalidError{What: fmt.Sprintf("version %d", m.Version), Why: "is not a detached version: only those can be attached"}
	}
	if unknown := (m.ReaderFlags | m.WriterFlags) &^ attachableFlags; unknown != 0 {
		return fmt.Errorf("%w: it has feature flags with bits %v set, which are not known here", ErrUnsupportedManifest, unknown)
	}
	if !m.ReadVersionKnown {
		if len(a.folded) > 0 {
			return fmt.Errorf("%w: one that it was made upon does not tell from which version it was made", ErrUnsupportedManifest)
		}
		return nil // a writer without transactions: that it made the manifest from the version before is its word
	}
	base := m.ReadVersion
	if base.Detached() {
		var known bool
		if base, known = a.attached[base]; !known {
			return fmt.Errorf("%w: it was made from detached version %d: attach that one first, as version %d, or give its manifest", ErrUnsupportedManifest, m.ReadVersion, a.version-1)
		}
	}
	if base != a.version-1 {
		return fmt.Errorf("%w: from %d, so it cannot follow version %d: make the change again on that version", ErrStaleManifest, base, a.version-1)
	}
	return nil
}

func (a attacher) manifest(out []byte, f protoField) ([]byte, error) {
	switch f.number {
	case manifestVersion:
		return appendUint(out, f.number, uint64(a.version)), nil
	case manifestFragments:
		return rewriteInside(out, f, a.fragment)
	case manifestFragmentTree:
		return nil, fmt.Errorf("%w: its fragments are stored in a tree", ErrUnsupportedManifest)
	}
	return append(out, f.raw...), nil
}

func (a attacher) fragment(out []byte, f protoField) ([]byte, error) {
	switch f.number {
	case fragmentUpdatedVersions, fragmentCreatedVersions:
		return rewriteInside(out, f, a.sequence)
	case fragmentUpdatedColumn, fragmentCreatedColumn:
		return nil, fmt.Errorf("%w: a data file holds the versions of its rows", ErrUnsupportedManifest)
	case fragmentOverlays:
		return nil, fmt.Errorf("%w: a fragment has overlays", ErrUnsupportedManifest)
	}
	return append(out, f.raw...), nil
}

func (a attacher) sequence(out []byte, f protoField) ([]byte, error) {
	if f.number != versionSequenceRuns {
		return append(out, f.raw...), nil
	}
	return rewriteInside(out, f, a.run)
}

func (a attacher) run(out []byte, f protoField) ([]byte, error) {
	if f.number != versionRunVersion {
		return append(out, f.raw...), nil
	}
	n, err := f.uint()
	if err != nil {
		return nil, err
	}
	v := VersionNumber(n)
	if v.Detached() {
		base, known := a.attached[v-1]
		switch {
		case a.folded[v-1]:
			base = a.version - 1
		case !known:
			return nil, fmt.Errorf("%w: it has rows made upon detached version %d, which is not attached", ErrUnsupportedManifest, v-1)
		}
		v = base + 1
	}
	if v > a.version {
		return nil, fmt.Errorf("%w: it has rows of version %d, which is after %d", ErrUnsupportedManifest, v, a.version)
	}
	if uint64(v) == n {
		return append(out, f.raw...), nil
	}
	return appendUint(out, f.number, uint64(v)), nil
}

func appendUint(out []byte, number protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(out, number, protowire.VarintType), v)
}

// checkIndexVersions refuses a manifest whose index section, which stands in the file before the manifest, has an index that
// was built from a detached version.
func checkIndexVersions(before, message []byte) error {
	section, _, err := manifestSection(before, message, manifestIndexSection)
	if err != nil {
		return corrupt("manifest", "%v", err)
	}
	for index, err := range protoFields(section) {
		if err == nil && index.number == indexSectionIndices {
			err = checkIndexVersion(index)
		}
		if err != nil {
			return attachError(err)
		}
	}
	return nil
}

func checkIndexVersion(index protoField) error {
	message, err := index.content()
	if err != nil {
		return err
	}
	var name string
	var version uint64
	for f, err := range protoFields(message) {
		switch {
		case err != nil:
		case f.number == indexName:
			name, err = f.text()
		case f.number == indexDatasetVersion:
			version, err = f.uint()
		}
		if err != nil {
			return fmt.Errorf("in the index section: %w", err)
		}
	}
	if VersionNumber(version).Detached() {
		return fmt.Errorf("%w: its index %s was built from detached version %d", ErrUnsupportedManifest, quote(name), VersionNumber(version))
	}
	return nil
}
