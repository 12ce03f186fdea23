package lance

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of a transaction. Those from operationAppend on each hold one kind of operation; there is one of them.
const (
	transactionUUID       protowire.Number = 2
	transactionTag        protowire.Number = 3
	transactionProperties protowire.Number = 4
	operationAppend       protowire.Number = 100
	operationDelete       protowire.Number = 101
	operationOverwrite    protowire.Number = 102
	operationCreateIndex  protowire.Number = 103
	operationRewrite      protowire.Number = 104
	operationMerge        protowire.Number = 105
	operationRestore      protowire.Number = 106
	operationReserve      protowire.Number = 107
	operationUpdate       protowire.Number = 108
	operationProject      protowire.Number = 109
	operationReplaceData  protowire.Number = 111
)

// Fields of the operations overwrite and merge, which both hold a table's whole content.
const (
	contentFragments protowire.Number = 1
	contentFields    protowire.Number = 2
	contentMetadata  protowire.Number = 3
)

// reach tells how much of a table a transaction may have changed.
type reach int

const (
	reachAppend reach = iota // new fragments, nothing else
	reachRows                // rows added, deleted, or moved to new fragments; no column changed in place
	reachTable               // anything of fragments, schema and indices
	reachAll                 // configuration and storage bases too, or nobody knows
)

// readReach returns the reach of the transaction that a manifest file has a copy of. Where it has none (a large one stands in a file of
// its own), or one that is not known here, that is everything.
func readReach(data []byte) reach {
	message, at, err := manifestMessage(data)
	if err != nil {
		return reachAll
	}
	transaction, _, err := transactionSection(data[:at], message)
	if err != nil {
		return reachAll
	}
	found := reachAll
	for f, err := range protoFields(transaction) {
		switch {
		case err != nil:
			return reachAll
		case f.number <= transactionProperties:
		case f.number < operationAppend || found != reachAll:
			return reachAll
		default:
			found = operationReach(f)
		}
	}
	return found
}

// operationReach goes by the fields of the operation too, since one that is not known here might say anything.
func operationReach(operation protoField) reach {
	switch operation.number {
	case operationAppend:
		if onlyFields(operation, 1) {
			return reachAppend
		}
	case operationDelete:
		if onlyFields(operation, 1, 2, 3) {
			return reachRows
		}
	case operationUpdate:
		// Left out: columns changed in place (4, 9, 10, and the mode, 7) and merged SSTables (5).
		if onlyFields(operation, 1, 2, 3, 6, 8) {
			return reachRows
		}
	case operationOverwrite:
		// Left out: configuration (4) and storage bases (5).
		if !onlyFields(operation, contentFragments, contentFields, contentMetadata) {
			return reachAll
		}
	case operationCreateIndex, operationRewrite, operationMerge, operationRestore, operationReserve, operationProject, operationReplaceData:
	default:
		return reachAll
	}
	return reachTable
}

// onlyFields reports whether a field is a message with no other fields than the given ones.
func onlyFields(f protoField, known ...protowire.Number) bool {
	content, err := f.content()
	if err != nil {
		return false
	}
	for inner, err := range protoFields(content) {
		if err != nil || !slices.Contains(known, inner.number) {
			return false
		}
	}
	return true
}

// maxStandIn bounds the transaction that standIn writes into a manifest file. It is the size up to which Lance does so.
const maxStandIn = 20 << 20

// standIn takes the place of a manifest's transaction, where that does not tell all that a writer has to know who read an earlier version.
// Before such a writer commits it looks for conflicts with the transaction of each version since; how it fares was found by
// experiment with pylance 14.0.2, and read in the source of its conflict check:
//
//   - Merge ("the table now has these fragments and this schema") stops every writer that changes rows, fragments or the schema,
//     with a conflict that may be retried; delete, update and merge_insert retry by themselves. It lets pass an overwrite, a restore
//     and a change of configuration, for which rows added or removed meanwhile never matter, and the creation of an index, which is
//     right as long as no row changed in place: so for reachRows.
//   - Overwrite ("the table was replaced by this one") stops those and the creation of an index and another overwrite, with a
//     conflict that says so; the writer has to open the table again. It lets pass restores and changes of configuration and
//     storage bases: so for reachTable.
//   - No transaction at all stops everybody but a restore, with an error that calls itself internal ("Dataset version 2 does not
//     have a transaction file").
//
// All three leave the version as it is to readers, to writers that read it, to tags, branches, clones, compaction and
// cleanup. Not so a transaction without an operation, which stops writers as well but breaks reading the history.
type standIn struct {
	operation protowire.Number // operationMerge or operationOverwrite; 0 for no transaction
	read      VersionNumber    // that the change was made on
	notes     []byte           // fields of the transaction that stay: tag and properties, the commit's message among them
}

// standInFor returns the operation that conflicts with whatever a change of that reach conflicts with.
func standInFor(r reach) protowire.Number {
	switch r {
	case reachAppend, reachRows:
		return operationMerge
	case reachTable:
		return operationOverwrite
	}
	return 0
}

// put returns the sections and the message of a manifest with the transaction replaced. Both the pointer to the file's copy and the name
// of the transaction's own file go: old releases of Lance look at the latter alone. The result is the same at every call.
func (s standIn) put(sections, message []byte) (newSections, newMessage []byte, err error) {
	var content []byte
	message, err = rewriteProto(message, func(out []byte, f protoField) ([]byte, error) {
		switch f.number {
		case manifestTransactionFile, manifestOldTransaction, manifestTransaction:
			return out, nil
		case manifestFragmentTree: // the fragments are elsewhere
			s.operation = 0
		case manifestFragments:
			content = protowire.AppendBytes(protowire.AppendTag(content, contentFragments, protowire.BytesType), f.value)
		case manifestFields:
			content = protowire.AppendBytes(protowire.AppendTag(content, contentFields, protowire.BytesType), f.value)
		case manifestMetadata:
			content = protowire.AppendBytes(protowire.AppendTag(content, contentMetadata, protowire.BytesType), f.value)
		}
		return append(out, f.raw...), nil
	})
	if err != nil || s.operation == 0 || len(content) > maxStandIn {
		return sections, message, err
	}
	transaction := appendUint(nil, transactionReadVersion, uint64(s.read))
	transaction = protowire.AppendString(protowire.AppendTag(transaction, transactionUUID, protowire.BytesType), contentUUID(message))
	transaction = append(transaction, s.notes...)
	transaction = protowire.AppendBytes(protowire.AppendTag(transaction, s.operation, protowire.BytesType), content)
	newSections = append(make([]byte, 0, len(sections)+manifestLengthBytes+len(transaction)), sections...)
	newSections = binary.LittleEndian.AppendUint32(newSections, uint32(len(transaction)))
	newSections = append(newSections, transaction...)
	return newSections, appendUint(message, manifestTransaction, uint64(len(sections))), nil
}

// contentUUID returns a UUID (RFC 9562, version 8) made from a digest: a transaction needs one, and equal manifests must stay equal.
func contentUUID(content []byte) string {
	sum := sha256.Sum256(content)
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// transactionNotes returns tag and properties of the transaction that a manifest file has a copy of, as they stand in it.
func transactionNotes(data []byte) []byte {
	message, at, err := manifestMessage(data)
	if err != nil {
		return nil
	}
	transaction, _, err := transactionSection(data[:at], message)
	if err != nil {
		return nil
	}
	var notes []byte
	for f, err := range protoFields(transaction) {
		if err != nil {
			return nil
		}
		if f.number == transactionTag || f.number == transactionProperties {
			notes = append(notes, f.raw...)
		}
	}
	return notes
}
