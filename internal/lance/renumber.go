package lance

import "fmt"

// RenumberVersion returns the file of a manifest with only its version number changed to v, the one after its own, so that the
// catalog can repeat a version under the next number (C5). Everything else stays, the versions that fragments record for their rows included:
// the rows are those of the version that is repeated. data is not changed.
//
// The error is a *CorruptError as from ReadManifest, or an *InvalidError where v is not the number after the manifest's own.
func RenumberVersion(data []byte, v VersionNumber) ([]byte, error) {
	m, err := ReadManifest(data)
	if err != nil {
		return nil, err
	}
	if m.Version.Detached() || v != m.Version+1 {
		return nil, &InvalidError{What: fmt.Sprintf("version %d", v), Why: fmt.Sprintf("is not the one after %d", m.Version)}
	}
	return rewriteManifest(data, func(out []byte, f protoField) ([]byte, error) {
		if f.number == manifestVersion {
			return appendUint(out, f.number, uint64(v)), nil
		}
		return append(out, f.raw...), nil
	})
}
