// Package model holds an executable model of the commit protocol and explores it exhaustively: every interleaving of the
// servers that drive and help transactions, crashes and timeouts with operations still in flight, a writer that bypasses the
// catalog, clients that replay, clean up and delete their staging. In every reachable state it checks what the catalog
// promises. Each rule of the protocol (C4-C11) can be taken out alone, which shows the promise that it keeps.
//
// The model is small on purpose: tables A and B, versions N and N+1, at most two entries a transaction. What it leaves out:
// the bytes of manifests (a content is a name), SQL (a database transaction is one atomic step, C12), the wire, drop and rename.
// It shares no code with the catalog: where the two differ, one of them is wrong. `go test ./test/model` checks that
// everything holds with all rules and that each rule taken out breaks what README.md says; `go run ./test/model/cmd/commitmodel`
// prints that table with the shortest traces.
package model
