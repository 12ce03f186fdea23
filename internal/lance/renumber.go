package lance

import "fmt"

// RenumberVersion returns the file of a manifest with its version number changed to v, the one after its own, so that the catalog
// can repeat a version under the next number (the echo, C5). The versions that fragments, indices and overlays record stay:
// they are those of the version that is repeated, and true of a later one, so that no feature flag is in the way. data is not changed, and the result is the same at every call.
//
// The transaction does not stay. The echo is there for a writer that read an aborted version in the slot of the one repeated, and builds upon
// it. Were that version's own transaction repeated, then an append would come out right, but by experiment with pylance 14.0.2,
// where both versions were appends: a delete removes rows of the committed version, an update, a merge_insert or a
// compaction puts the aborted rows in their place, and an index answers with the wrong rows, since the fragments of both have the same
// numbers, and an append conflicts with none of these. So the echo says that the table was overwritten with what it has, which
// every writer conflicts with that read an earlier version (see standIn). It has to open the table again.
//
// The error is a *CorruptError as from ReadManifest; an *InvalidError where v is not the number after the manifest's own; or
// wraps ErrUnsupportedManifest where the result would be too large for the format.
func RenumberVersion(data []byte, v VersionNumber) ([]byte, error) {
	m, err := ReadManifest(data)
	if err != nil {
		return nil, err
	}
	if m.Version.Detached() || v != m.Version+1 || v.Detached() {
		return nil, &InvalidError{What: fmt.Sprintf("version %d", v), Why: fmt.Sprintf("is not the one after %d", m.Version)}
	}
	return rewriteManifest(data, func(out []byte, f protoField) ([]byte, error) {
		if f.number == manifestVersion {
			return appendUint(out, f.number, uint64(v)), nil
		}
		return append(out, f.raw...), nil
	}, &standIn{operation: operationOverwrite, read: m.Version})
}
