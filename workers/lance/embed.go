// Package lance holds the worker of the engine, a package of Python, so that the server's binary carries it with it.
//
// What does not live here: what starts workers and talks to them (package internal/engine/worker).
package lance

import "embed"

// Files are the worker's package, lancerest_worker, and requirements.txt, which lists what it runs with.
//
//go:embed requirements.txt lancerest_worker/*.py lancerest_worker/operations/*.py
var Files embed.FS
