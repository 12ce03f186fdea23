// Package lance holds the words of the catalog: identifiers, namespaces, tables, chains, versions, transactions, tags and
// branches, the names and paths that Lance gives to manifests and references, and the reading and patching of a manifest's bytes.
//
// It knows no storage, no SQL and no HTTP, and imports nothing of this project. Names follow the field's standard terms:
// a chain is the sequence of versions of one branch of one table incarnation (docs/commit.md, C1); a staged manifest is one that
// a client wrote under a temporary name and that nobody reads yet; a detached version stands outside its chain.
package lance
