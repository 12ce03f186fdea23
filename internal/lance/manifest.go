package lance

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Manifest is what the catalog needs to know of a version's manifest file.
type Manifest struct {
	Version         VersionNumber
	Branch          Branch
	Timestamp       time.Time // UTC; zero where the file has none
	ReaderFlags     FeatureFlags
	WriterFlags     FeatureFlags
	FileFormat      string // of the data files: "lance"; "" where the file does not say
	DataVersion     string // of the data files: "2.1"
	WriterLibrary   string // "lance"
	WriterVersion   string // of that library: "14.0.2"
	TransactionFile string // name inside the table's _transactions directory, "" for none
	MaxFragmentID   int64  // the highest ever used in the table's history, -1 for none
	Fragments       int
	PhysicalRows    int64 // rows of all fragments, deleted ones included
	DeletedRows     int64
	DataFiles       int
	DeletionFiles   int
	DataBytes       int64 // of all data files whose sizes the manifest has
	// RowsUnknown says that the counts of rows are too low: a fragment does not tell how many it has, as old writers left it, or
	// the fragments stand in other files.
	RowsUnknown bool
	// Schema is a digest of the schema with its metadata and of the table's metadata, whatever the order in which the file has the
	// entries of maps: versions with one digest are described alike but for their numbers.
	Schema Digest
	// RowVersions says that fragments record in which version each row was made and changed (tables with stable row ids).
	RowVersions bool
	// ReadVersion is the version that the writer says it had read and changed, where ReadVersionKnown says that the file tells. It
	// stands in the name of the transaction file, "<version>-<uuid>.txn", or else in the file's copy of the transaction.
	ReadVersion      VersionNumber
	ReadVersionKnown bool
	// TransactionUUID is the writer's name for the change, from the same places; "" where the file does not tell.
	TransactionUUID string
}

// Rows returns the number of rows that a reader of the version sees.
func (m Manifest) Rows() int64 { return m.PhysicalRows - m.DeletedRows }

// FeatureFlags are the abilities that a manifest demands of its readers or writers, one bit each.
type FeatureFlags uint64

// The flags that the catalog has to tell apart. Bit numbers are those of the Lance table format, as of 14.0.2.
const (
	FlagDeletionFiles       FeatureFlags = 1 << 0
	FlagStableRowIDs        FeatureFlags = 1 << 1
	FlagV2Format            FeatureFlags = 1 << 2 // no longer set
	FlagTableConfig         FeatureFlags = 1 << 3
	FlagBasePaths           FeatureFlags = 1 << 4
	FlagNoTransactionFiles  FeatureFlags = 1 << 5
	FlagDataOverlays        FeatureFlags = 1 << 6
	FlagCoveringIndexes     FeatureFlags = 1 << 7
	FlagMixedDataVersions   FeatureFlags = 1 << 8
	FlagReuseStableRowIDs   FeatureFlags = 1 << 9
	FlagFragmentReuse       FeatureFlags = 1 << 10
	FlagSpilledRowLineage   FeatureFlags = 1 << 11
	FlagFragmentTree        FeatureFlags = 1 << 12
	FlagCoveringApart       FeatureFlags = 1 << 13 // fields that an index carries along are not among those that it is made for
	FlagManagedBlobs        FeatureFlags = 1 << 14
	FlagNonReusableFieldIDs FeatureFlags = 1 << 15
	FlagZoneSeeds           FeatureFlags = 1 << 16
	FlagObjectMetadata      FeatureFlags = 1 << 17
)

// DescribedFlags are the reader flags with which a manifest can be described: none of them changes what its schema, its counts and its index
// section mean, or it is known how. With any other flag they may mean something else. A fragment tree is not among them: the fragments
// are then in other files.
const DescribedFlags = FlagDeletionFiles | FlagStableRowIDs | FlagV2Format | FlagTableConfig | FlagBasePaths | FlagNoTransactionFiles |
	FlagDataOverlays | FlagCoveringIndexes | FlagMixedDataVersions | FlagReuseStableRowIDs | FlagFragmentReuse | FlagSpilledRowLineage |
	FlagCoveringApart | FlagManagedBlobs | FlagNonReusableFieldIDs | FlagZoneSeeds | FlagObjectMetadata

// The frame of a Lance file.
const (
	manifestMagic       = "LANC"
	manifestFooterBytes = 16
	manifestLengthBytes = 4
	// manifestPositionBytes are those of the footer that tell where the message begins.
	manifestPositionBytes = 8
)

// String lists the numbers of the bits that are set: "0, 3".
func (f FeatureFlags) String() string {
	if f == 0 {
		return "none"
	}
	var names []string
	for rest := uint64(f); rest != 0; rest &= rest - 1 {
		names = append(names, strconv.Itoa(bits.TrailingZeros64(rest)))
	}
	return strings.Join(names, ", ")
}

// Fields of the protobuf messages of a manifest file.
const (
	manifestFields          protowire.Number = 1
	manifestFragments       protowire.Number = 2
	manifestVersion         protowire.Number = 3
	manifestMetadata        protowire.Number = 5
	manifestIndexSection    protowire.Number = 6
	manifestTimestamp       protowire.Number = 7
	manifestReaderFlags     protowire.Number = 9
	manifestWriterFlags     protowire.Number = 10
	manifestMaxFragmentID   protowire.Number = 11
	manifestTransactionFile protowire.Number = 12
	manifestWriter          protowire.Number = 13
	manifestDataFormat      protowire.Number = 15
	manifestTableMetadata   protowire.Number = 19
	manifestBranch          protowire.Number = 20
	manifestOldTransaction  protowire.Number = 21 // where writers of some releases put 23; counts where that is absent
	manifestTransaction     protowire.Number = 23

	transactionReadVersion protowire.Number = 1

	fragmentID              protowire.Number = 1
	fragmentDataFile        protowire.Number = 2
	fragmentDeletionFile    protowire.Number = 3
	fragmentPhysicalRows    protowire.Number = 4
	fragmentUpdatedVersions protowire.Number = 7
	fragmentCreatedVersions protowire.Number = 9
	fragmentUpdatedColumn   protowire.Number = 13
	fragmentCreatedColumn   protowire.Number = 14
	deletionFileDeletedRows protowire.Number = 4
	dataFileBytes           protowire.Number = 6
	timestampSeconds        protowire.Number = 1
	timestampNanos          protowire.Number = 2
	firstText               protowire.Number = 1 // of a writer: its library; of a data format: the file format
	secondText              protowire.Number = 2 // of either: the version
)

// ReadManifest reads a manifest file, given whole. Of the sections that the manifest points to it reads at most the number
// of the version read, from the transaction. It allocates nothing by sizes that the file claims.
//
// The error is a *CorruptError that says what is wrong: the file is too short, its magic number, the position or length of the
// manifest in it, a malformed or mistyped field, no version, an impossible timestamp, count or branch.
func ReadManifest(data []byte) (Manifest, error) {
	message, at, err := manifestMessage(data)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{MaxFragmentID: -1}
	var schema schemaDigest
	for f, err := range protoFields(message) {
		if err == nil {
			err = m.read(f)
		}
		if err == nil {
			err = schema.add(f)
		}
		if err != nil {
			return Manifest{}, corrupt("manifest", "%v", err)
		}
	}
	m.Schema = schema.sum()
	if err := m.findTransaction(data[:at], message); err != nil {
		return Manifest{}, corrupt("manifest", "%v", err)
	}
	switch {
	case m.Version == 0:
		return Manifest{}, corrupt("manifest", "has no version number")
	case m.DeletedRows > m.PhysicalRows:
		return Manifest{}, corrupt("manifest", "counts %d deleted rows of %d", m.DeletedRows, m.PhysicalRows)
	}
	return m, nil
}

// manifestMessage returns the protobuf message of a manifest file, and its position: the file ends in a footer of the
// position of the manifest (int64), two format numbers (uint16) and the magic number, all little-endian; at the position stand
// the length of the message (uint32) and the message, which reaches up to the footer.
func manifestMessage(data []byte) (message []byte, at int, err error) {
	const what = "manifest"
	size := len(data)
	if size < manifestFooterBytes+manifestLengthBytes {
		return nil, 0, corrupt(what, "has %d bytes, too few for a manifest", size)
	}
	footer := data[size-manifestFooterBytes:]
	if magic := string(footer[12:]); magic != manifestMagic {
		return nil, 0, corrupt(what, "ends in %q, not in %q: it is not a Lance file or is cut short", magic, manifestMagic)
	}
	last := size - manifestFooterBytes - manifestLengthBytes
	position := int64(binary.LittleEndian.Uint64(footer))
	if position < 0 || position > int64(last) {
		return nil, 0, corrupt(what, "says that its message is at byte %d of %d", position, size)
	}
	at = int(position)
	length := binary.LittleEndian.Uint32(data[at:])
	if int64(length) != int64(last-at) {
		return nil, 0, corrupt(what, "says that its message has %d bytes where it has %d", length, last-at)
	}
	return data[at+manifestLengthBytes : size-manifestFooterBytes], at, nil
}

// read takes over one field of the manifest's message. Of a field that stands there twice the last one counts, as protobuf wants.
func (m *Manifest) read(f protoField) (err error) {
	var v uint64
	switch f.number {
	case manifestFragments:
		err = m.addFragment(f)
	case manifestFragmentTree:
		m.RowsUnknown = true
	case manifestVersion:
		v, err = f.uint()
		m.Version = VersionNumber(v)
	case manifestTimestamp:
		m.Timestamp, err = readTimestamp(f)
	case manifestReaderFlags:
		v, err = f.uint()
		m.ReaderFlags = FeatureFlags(v)
	case manifestWriterFlags:
		v, err = f.uint()
		m.WriterFlags = FeatureFlags(v)
	case manifestMaxFragmentID:
		v, err = f.uint()
		m.MaxFragmentID = int64(uint32(v))
	case manifestTransactionFile:
		m.TransactionFile, err = f.text()
	case manifestWriter:
		m.WriterLibrary, m.WriterVersion, err = readTexts(f)
	case manifestDataFormat:
		m.FileFormat, m.DataVersion, err = readTexts(f)
	case manifestBranch:
		m.Branch, err = readBranch(f)
	}
	return err
}

// findTransaction sets what is known of the transaction. One that cannot be decoded leaves it unknown: that section may be of a newer
// form, and no reader may fail over it.
func (m *Manifest) findTransaction(before, message []byte) error {
	digits, rest, ok := strings.Cut(m.TransactionFile, "-")
	if v, err := strconv.ParseUint(digits, 10, 64); ok && err == nil {
		m.ReadVersion, m.ReadVersionKnown = VersionNumber(v), true
		m.TransactionUUID = onlyUUID(strings.TrimSuffix(rest, ".txn"))
		return nil
	}
	section, found, err := transactionSection(before, message)
	if err != nil || !found {
		return err
	}
	var read VersionNumber
	var id string
	for f, err := range protoFields(section) {
		var v uint64
		switch {
		case err != nil:
		case f.number == transactionReadVersion:
			v, err = f.uint()
			read = VersionNumber(v)
		case f.number == transactionUUID:
			id, err = f.text()
		}
		if err != nil {
			return nil
		}
	}
	m.ReadVersion, m.ReadVersionKnown, m.TransactionUUID = read, true, onlyUUID(id)
	return nil
}

// onlyUUID returns a text that is a UUID in its usual form, and "" for any other.
func onlyUUID(text string) string {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(text) != len(form) {
		return ""
	}
	for i := range form {
		hex := text[i] >= '0' && text[i] <= '9' || text[i] >= 'a' && text[i] <= 'f' || text[i] >= 'A' && text[i] <= 'F'
		if form[i] == 'x' && !hex || form[i] == '-' && text[i] != '-' {
			return ""
		}
	}
	return strings.ToLower(text)
}

// transactionSection returns the file's copy of the transaction. A large one stands in a file of its own alone.
func transactionSection(before, message []byte) (section []byte, found bool, err error) {
	if section, found, err = manifestSection(before, message, manifestTransaction); found || err != nil {
		return section, found, err
	}
	return manifestSection(before, message, manifestOldTransaction)
}

// manifestSection returns a section of the manifest file that a field of its message points to: a protobuf message behind a
// length of four bytes, in the part of the file before the manifest. found is false where the field is absent.
func manifestSection(before, message []byte, pointer protowire.Number) (section []byte, found bool, err error) {
	for f, err := range protoFields(message) {
		if err != nil {
			return nil, false, err
		}
		if f.number != pointer {
			continue
		}
		at, err := f.uint()
		if err != nil {
			return nil, false, err
		}
		if at > uint64(len(before)) || uint64(len(before))-at < manifestLengthBytes {
			return nil, false, fmt.Errorf("field %d points to byte %d, outside the %d bytes before the message", pointer, at, len(before))
		}
		rest := before[at:]
		length := binary.LittleEndian.Uint32(rest)
		if uint64(length) > uint64(len(rest)-manifestLengthBytes) {
			return nil, false, fmt.Errorf("field %d points to a section of %d bytes that does not end before the message", pointer, length)
		}
		section, found = rest[manifestLengthBytes:][:length], true
	}
	return section, found, nil
}

// readTimestamp reads a timestamp of seconds and nanoseconds since 1970. Years outside 1 to 9999 have no text form and are an
// error.
func readTimestamp(timestamp protoField) (time.Time, error) {
	message, err := timestamp.content()
	if err != nil {
		return time.Time{}, err
	}
	var seconds, nanos uint64
	for f, err := range protoFields(message) {
		switch {
		case err != nil:
		case f.number == timestampSeconds:
			seconds, err = f.uint()
		case f.number == timestampNanos:
			nanos, err = f.uint()
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("in the timestamp: %w", err)
		}
	}
	const year1, year10000 = -62135596800, 253402300800
	if s := int64(seconds); s < year1 || s >= year10000 || nanos >= 1e9 {
		return time.Time{}, fmt.Errorf("the timestamp, %d seconds and %d nanoseconds, is out of range", s, int64(nanos))
	}
	return time.Unix(int64(seconds), int64(nanos)).UTC(), nil
}

// readTexts reads a message that begins with two texts.
func readTexts(pair protoField) (first, second string, err error) {
	message, err := pair.content()
	if err != nil {
		return "", "", err
	}
	for f, err := range protoFields(message) {
		switch {
		case err != nil:
		case f.number == firstText:
			first, err = f.text()
		case f.number == secondText:
			second, err = f.text()
		}
		if err != nil {
			return "", "", fmt.Errorf("in field %d: %w", pair.number, err)
		}
	}
	return first, second, nil
}

// readBranch reads the name of a branch.
func readBranch(f protoField) (Branch, error) {
	name, err := f.text()
	if err != nil {
		return Main, err
	}
	return ParseBranchName(name)
}
