package local_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore/local"
)

// BenchmarkPutIfAbsent puts manifests of 4 KiB the ways of docs/decisions/0005-local-put.md. TMPDIR says on which file system.
func BenchmarkPutIfAbsent(b *testing.B) {
	for way, prepare := range map[string]func(*local.Store){"anonymous": func(*local.Store) {}, "named": (*local.Store).NameTemporaries} {
		for _, c := range []struct{ writers, tables int }{{1, 1}, {16, 1}, {16, 16}} {
			b.Run(fmt.Sprintf("%s/writers=%d/tables=%d", way, c.writers, c.tables), func(b *testing.B) {
				s, err := local.New(local.Options{Root: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				prepare(s)
				putEach(b, s, c.writers, c.tables)
			})
		}
	}
}

func putEach(b *testing.B, s *local.Store, writers, tables int) {
	data := make([]byte, 4096)
	var next atomic.Int64
	done := make(chan struct{})
	b.ResetTimer()
	for range writers {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
				key := fmt.Sprintf("%d.lance/_versions/%020d.manifest", i%tables, i)
				if _, err := s.PutIfAbsent(b.Context(), key, data); err != nil {
					b.Error(err)
				}
			}
		}()
	}
	for range writers {
		<-done
	}
}
