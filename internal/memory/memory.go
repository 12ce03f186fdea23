// Package memory keeps what was read from manifests, within a bound.
//
// What does not live here: how anything is read.
package memory

import (
	"container/list"
	"sync"

	"github.com/lancerest/lancerest/internal/lance"
)

// memoryMax bounds the bytes that are kept.
const memoryMax = 64 << 20

// Memory keeps what was read from manifests, by digests of what it was read from: nothing in it ever becomes wrong, so it only has to be
// bounded. What was not asked for the longest goes first.
type Memory struct {
	mu    sync.Mutex
	items map[Key]*list.Element
	order *list.List // of Item, the one used last in front
	bytes int64
}

// Key says what was read, and of what.
type Key struct {
	What   Kind
	Digest lance.Digest
}

// Kind is a kind of what is kept. All values of a kind have one type.
type Kind int

// The kinds, and by what digest their values are found.
const (
	OfSchema  Kind = iota // the description of a schema, by VersionSummary.Schema
	OfStats               // the numbers of a version's fragments, by Version.Digest
	OfIndices             // the description of a version's indices, by Version.Digest
	OfStored              // *lance.Version of an unmanaged table, by the name and the ETag of its manifest; nil where that cannot be read
)

// Item is something to keep, and about how many bytes it takes.
type Item struct {
	Key   Key
	Value any
	Bytes int64
}

// New returns an empty memory.
func New() *Memory { return &Memory{items: map[Key]*list.Element{}, order: list.New()} }

// Has reports whether something is kept.
func (m *Memory) Has(key Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.items[key] != nil
}

func (m *Memory) get(key Key) (any, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.items[key]
	if at == nil {
		return nil, false
	}
	m.order.MoveToFront(at)
	return at.Value.(Item).Value, true
}

// Put keeps something that takes about so many bytes. One that is too large for most of the memory is not kept.
func (m *Memory) Put(item Item) {
	if item.Bytes > memoryMax/4 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items[item.Key] != nil {
		return
	}
	m.items[item.Key] = m.order.PushFront(item)
	m.bytes += item.Bytes
	for m.bytes > memoryMax {
		oldest := m.order.Remove(m.order.Back()).(Item)
		delete(m.items, oldest.Key)
		m.bytes -= oldest.Bytes
	}
}

// Remembered returns what is kept under a key, or what make makes, which is then kept as taking about so many bytes. The error is make's;
// nothing is kept then. T must be the type of the key's kind.
func Remembered[T any](m *Memory, key Key, make func() (value T, bytes int64, err error)) (T, error) {
	if kept, ok := m.get(key); ok {
		return kept.(T), nil
	}
	value, bytes, err := make()
	if err == nil {
		m.Put(Item{Key: key, Value: value, Bytes: bytes})
	}
	return value, err
}
