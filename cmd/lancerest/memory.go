package main

import (
	"os"
	"runtime/debug"
)

// heapGrowth is how much the heap may grow, in percent of what is in use, before garbage is collected. The server holds little (its
// state is in the database, its manifests in storage) and makes much garbage, so Go's own 100 has it collect dozens of times a second
// under load, for some 10 % of its processor time (docs/performance.md). With 400 it stays below 100 MiB.
const heapGrowth = 400

// heapEnough is the size in bytes from which garbage is collected more eagerly than that: commits of manifests of hundreds of MiB hold up to
// 1.5 GiB of them (catalog.Options.ManifestMemory), and five times as much is not to be left lying about.
const heapEnough = 2 << 30

// growHeap applies both, unless the operator has said otherwise.
func growHeap() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapEnough)
	}
}
