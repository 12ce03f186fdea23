package lance

import (
	"encoding/hex"
	"fmt"
	"time"
)

// VersionNumber is the number of a version as it travels on the wire: positive in a chain, negative for a detached version
// (the u64 of the manifest with its top bit set, read as int64; client contract, fact 63).
type VersionNumber int64

// Detached reports whether the number is that of a detached version.
func (v VersionNumber) Detached() bool { return v < 0 }

// Chain names the sequence of versions of one branch of one table incarnation (C1).
type Chain struct {
	Table  ObjectID
	Branch Branch
}

// Slot is the place of one version in a chain. At most one version ever stands in it.
type Slot struct {
	Chain  Chain
	Number VersionNumber
}

// VersionState tells how far a version's row has come.
type VersionState int16

// The states of a version. Only committed versions are ever shown (C7). Pruned ones were committed, and a client's cleanup
// removed their manifests; deleted ones were removed by request. Both keep their slot, so that no number is given twice.
const (
	VersionPending   VersionState = 0
	VersionCommitted VersionState = 1
	VersionPruned    VersionState = 2
	VersionDeleted   VersionState = 3
)

// Origin tells who brought a version to the catalog.
type Origin int16

// The origins of a version: committed through the catalog, adopted from storage (C9), or imported when the table was registered.
const (
	OriginCatalog Origin = 1
	OriginStorage Origin = 2
	OriginImport  Origin = 3
)

// Digest is the SHA-256 of a manifest's bytes as published.
type Digest [32]byte

// HexDigest returns a digest in lower-case hexadecimal, as the records of transactions and jobs have it.
func HexDigest(d Digest) string { return hex.EncodeToString(d[:]) }

// ParseDigest reads what HexDigest has written. The error says that the record is damaged.
func ParseDigest(text string) (Digest, error) {
	var d Digest
	if n, err := hex.Decode(d[:], []byte(text)); err != nil || n != len(d) {
		return d, fmt.Errorf("digest %q on record is damaged", text)
	}
	return d, nil
}

// Version is one version of a table: a row of the catalog and a manifest in storage.
type Version struct {
	Slot
	State       VersionState
	Origin      Origin
	Transaction TransactionID // "" where Origin is not OriginCatalog
	Scheme      NamingScheme  // decides the manifest's final name
	// Staged is the name, inside the chain's _versions directory, under which the writer left the manifest; "" where unknown.
	Staged    string
	Size      int64 // bytes of the manifest
	ETag      string
	Digest    Digest
	Timestamp time.Time // millisecond precision
	Metadata  map[string]string
	// Summary is nil where the row was written by a release that kept none.
	Summary *VersionSummary
}

// VersionSummary is what a manifest says in numbers, kept with the version so that nobody has to read the manifest for them.
type VersionSummary struct {
	Rows          int64 // that a reader sees; -1 where the manifest does not tell
	DeletedRows   int64
	Fragments     int64
	DataFiles     int64
	DeletionFiles int64
	DataBytes     int64 // of the data files, as far as the manifest has their sizes
	ReaderFlags   FeatureFlags
	// Schema is Manifest.Schema: versions with the same one have the same schema, with its metadata, and the same table metadata.
	Schema Digest
	// TransactionUUID is the writer's own name for the change that made the version, "" where the manifest does not tell.
	TransactionUUID string
}

// Summary returns what is kept of a manifest with its version.
func (m Manifest) Summary() *VersionSummary {
	s := &VersionSummary{
		Rows: m.Rows(), DeletedRows: m.DeletedRows, Fragments: int64(m.Fragments), DataFiles: int64(m.DataFiles), DeletionFiles: int64(m.DeletionFiles),
		DataBytes: m.DataBytes, ReaderFlags: m.ReaderFlags, Schema: m.Schema, TransactionUUID: m.TransactionUUID,
	}
	if m.RowsUnknown {
		s.Rows = -1
	}
	return s
}
