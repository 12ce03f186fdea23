// Package place knows where tables lie: the allowed roots, the directories of tables in them, which locations a table may have, and the
// tags and branches that clients keep as files there. It reads manifests so that not too many are in memory at a time, and concludes
// nothing from an absence before the storage has proven to be there.
//
// What does not live here: the ways of any particular storage (objstore), and what manifests mean.
package place

import "github.com/lancerest/lancerest/internal/lance"

// Options say where tables may lie, and how much is asked of storage at a time.
type Options struct {
	// Roots are the allowed roots, at least one; tables that do not ask for a place go to the first.
	Roots []Root
	// Reserved are directories that no table may hold or lie in, unless in a root inside of one.
	Reserved []lance.Location
	// MaxManifest bounds the bytes of one manifest, ManifestMemory those of all manifests that are held at a time, beside half as much
	// that commits keep; it counts as MaxManifest at least.
	MaxManifest, ManifestMemory int64
	// Parallel bounds the storage calls that one request makes at a time, and ParallelDistant those to a storage that is distant.
	Parallel, ParallelDistant int
}

// Places finds the places of tables in the allowed roots. All methods are safe for concurrent use.
type Places struct {
	opts Options
	room *room
}

// New returns the places in the given roots. Nothing is looked at in storage: Open does.
func New(opts Options) *Places {
	return &Places{opts: opts, room: newRoom(opts.ManifestMemory, opts.MaxManifest)}
}

// Roots returns the allowed roots.
func (ps *Places) Roots() []Root { return ps.opts.Roots }

// MaxManifest returns the most bytes that one manifest may have.
func (ps *Places) MaxManifest() int64 { return ps.opts.MaxManifest }
