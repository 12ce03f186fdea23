package catalog

import (
	"container/list"
	"sync"

	"github.com/lancerest/lancerest/internal/lance"
)

// memoryMax bounds the bytes that are kept of what manifests say.
const memoryMax = 64 << 20

// memory keeps what was read from manifests, by digests of what it was read from: nothing in it ever becomes wrong, so it only has to be
// bounded. What was not asked for the longest goes first.
type memory struct {
	mu    sync.Mutex
	items map[memoryKey]*list.Element
	order *list.List // of memoryItem, the one used last in front
	bytes int64
}

// memoryKey says what was read, and of what.
type memoryKey struct {
	what   memoryKind
	digest lance.Digest
}

type memoryKind int

const (
	memoryOfSchema  memoryKind = iota // *described, by VersionSummary.Schema
	memoryOfStats                     // *tableStats, by Version.Digest
	memoryOfIndices                   // *[]indexShown, by Version.Digest
	memoryOfStored                    // *lance.Version of an unmanaged table, by the name and the ETag of its manifest; nil where that cannot be read
)

type memoryItem struct {
	key   memoryKey
	value any
	bytes int64
}

func newMemory() *memory { return &memory{items: map[memoryKey]*list.Element{}, order: list.New()} }

// has reports whether something is kept.
func (m *memory) has(key memoryKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.items[key] != nil
}

func (m *memory) get(key memoryKey) (any, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.items[key]
	if at == nil {
		return nil, false
	}
	m.order.MoveToFront(at)
	return at.Value.(memoryItem).value, true
}

// put keeps something that takes about so many bytes. One that is too large for most of the memory is not kept.
func (m *memory) put(item memoryItem) {
	if item.bytes > memoryMax/4 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items[item.key] != nil {
		return
	}
	m.items[item.key] = m.order.PushFront(item)
	m.bytes += item.bytes
	for m.bytes > memoryMax {
		oldest := m.order.Remove(m.order.Back()).(memoryItem)
		delete(m.items, oldest.key)
		m.bytes -= oldest.bytes
	}
}

// remembered returns what is kept under a key, or what make makes, which is then kept.
func remembered[T any](m *memory, key memoryKey, make func() (value T, bytes int64, err error)) (T, error) {
	if kept, ok := m.get(key); ok {
		return kept.(T), nil
	}
	value, bytes, err := make()
	if err == nil {
		m.put(memoryItem{key: key, value: value, bytes: bytes})
	}
	return value, err
}
