// Package wire holds the black-box suite of the wire: it speaks plain HTTP to a running catalog and checks what comes back,
// operation by operation, error by error. Nothing of the server and no client library is imported, so what it says about a
// server holds for any implementation of the Lance Namespace REST specification that keeps its tables on the local file system.
//
//	go test ./test/wire                                    builds and starts the server of this tree
//	LANCEREST_URL=http://127.0.0.1:2333 go test ./test/wire     checks a running one
//	LANCEREST_PYTHON=python3 go test ./test/wire           also runs everything on the reference server that ships in pylance
//	LANCEREST_PYTHON=python3 go test ./test/wire -run Reference -update   writes docs/reference-differences.md anew
//
// Every test works in a namespace of its own with a random name, so that all of them run in parallel and against a shared server
// (where namespaces named wire_… stay behind).
// The package has no code outside its tests.
package wire
