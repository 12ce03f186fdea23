// Package chain knows which versions a chain has. The rows say so, but writers that go past the catalog and clients that clean up change
// storage without a word: here rows and storage are brought together again, for whoever asks and in the background. It follows the rules
// C7, C9 and C10 of docs/commit.md.
//
// What does not live here: new versions (package commit), and the answers to callers (package catalog).
package chain

import (
	"github.com/lancerest/lancerest/internal/commit/finish"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/memory"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/state"
)

// Options say what Chains work on. All fields are required.
type Options struct {
	State     *state.State
	Places    *place.Places
	Completer *finish.Completer
	// Memory keeps what was read from manifests.
	Memory *memory.Memory
}

// Chains knows the versions of all tables. All methods are safe for concurrent use.
type Chains struct {
	state     *state.State
	places    *place.Places
	completer *finish.Completer
	memory    *memory.Memory
	inUse     inUse
}

// New returns the chains of a state.
func New(opts Options) *Chains {
	return &Chains{state: opts.State, places: opts.Places, completer: opts.Completer, memory: opts.Memory}
}

// Located is a chain together with where it lies in storage. Path is what its table is called, for messages.
type Located struct {
	Chain lance.Chain
	Place place.Place
	Path  lance.TableID
}

// Of finds where a branch of a table lies. Errors: 19 (in no allowed root).
func (c *Chains) Of(t lance.Table, branch lance.Branch) (Located, error) {
	p, err := c.places.At(t.Location)
	return Located{Chain: lance.Chain{Table: t.ID, Branch: branch}, Place: p, Path: t.Path}, err
}
