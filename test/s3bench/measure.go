package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore"
)

// times are how long the same thing took, each time.
type times []time.Duration

// at is the time below which the given share lies.
func (t times) at(share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(t))
	return sorted[int(share*float64(len(sorted)-1))]
}

// measured is one part of the result.
type measured struct {
	delay                          time.Duration
	requests, create, one, several times
	flood                          times // the requests of the large batch, sent by nobody but this program
}

// measure opens a site and measures everything on it, in turns: what is small first, because what is large has an aftermath.
func measure(ctx context.Context, o options, s site) (measured, error) {
	m := measured{delay: s.delay}
	if err := s.open(ctx); err != nil {
		return m, err
	}
	defer s.close()
	single, err := s.declare(ctx, "single")
	if err != nil {
		return m, err
	}
	tables := make([]*table, o.tables)
	for i := range tables {
		if tables[i], err = s.declare(ctx, fmt.Sprintf("t%d", i)); err != nil {
			return m, err
		}
	}
	for range o.rounds {
		if err := s.small(ctx, &m, single); err != nil {
			return m, err
		}
	}
	for range o.rounds {
		if err := s.batch(ctx, &m.several, tables); err != nil {
			return m, err
		}
		if err := s.flood(ctx, &m, tables); err != nil {
			return m, err
		}
	}
	return m, nil
}

// small measures once what is about one table.
func (s *site) small(ctx context.Context, m *measured, single *table) error {
	staged, err := s.stage(ctx, single)
	if err != nil {
		return err
	}
	err = timed(&m.requests, func() error { return s.threeRequests(ctx, staged.ManifestPath) })
	if err != nil {
		return err
	}
	err = timed(&m.create, func() error {
		_, err := s.CreateTableVersion(ctx, &api.CreateTableVersionRequest{Target: api.At(single.name), StagedVersion: staged})
		return err
	})
	if err != nil {
		return err
	}
	return s.batch(ctx, &m.one, []*table{single})
}

// flood sends the requests of a batch as the server does: reads and looks together, then the puts.
func (s *site) flood(ctx context.Context, m *measured, tables []*table) error {
	staged := make([]string, len(tables))
	if err := all(ctx, len(tables), func(ctx context.Context, i int) (err error) {
		staged[i] = fmt.Sprintf("%s/flood/%s", tables[i].key, uuid.NewString())
		_, err = s.direct.PutIfAbsent(ctx, staged[i], lancetest.Manifest(lancetest.Spec{Version: 1}))
		return err
	}); err != nil {
		return err
	}
	data := make([][]byte, len(tables))
	return timed(&m.flood, func() error {
		err := all(ctx, 2*len(tables), func(ctx context.Context, i int) (err error) {
			if i%2 == 0 {
				data[i/2], _, err = s.objects.Get(ctx, staged[i/2], 0)
				return err
			}
			if _, err := s.objects.Head(ctx, staged[i/2]+"-free"); !errors.Is(err, objstore.ErrNotFound) {
				return fmt.Errorf("a name that should be free: %w", err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return all(ctx, len(tables), func(ctx context.Context, i int) error {
			_, err := s.objects.PutIfAbsent(ctx, staged[i]+"-free", data[i])
			return err
		})
	})
}

// all does n things, as many at once as the server does.
func all(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(128)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}

func timed(to *times, what func() error) error {
	begun := time.Now()
	err := what()
	*to = append(*to, time.Since(begun))
	return err
}

// threeRequests are those of a commit, one after another: read what is staged, look at a name that is free, put the bytes there.
func (s *site) threeRequests(ctx context.Context, staged string) error {
	data, _, err := s.objects.Get(ctx, staged, 0)
	if err != nil {
		return err
	}
	free := staged + "-free"
	if _, err := s.objects.Head(ctx, free); !errors.Is(err, objstore.ErrNotFound) {
		return fmt.Errorf("a name that should be free: %w", err)
	}
	_, err = s.objects.PutIfAbsent(ctx, free, data)
	return err
}

// batch commits the next version of some tables together. Manifests are staged before the clock starts.
func (s *site) batch(ctx context.Context, to *times, tables []*table) error {
	req := &api.BatchCreateTableVersionsRequest{Entries: make([]api.CreateTableVersionEntry, len(tables))}
	err := all(ctx, len(tables), func(ctx context.Context, i int) (err error) {
		req.Entries[i].ID = []string{tables[i].name}
		req.Entries[i].StagedVersion, err = s.stage(ctx, tables[i])
		return err
	})
	if err != nil {
		return err
	}
	return timed(to, func() error { _, err := s.BatchCreateTableVersions(ctx, req); return err })
}

// table is a table and its next version.
type table struct {
	name string
	key  string
	next int64
}

func (s *site) declare(ctx context.Context, name string) (*table, error) {
	resp, err := s.DeclareTable(ctx, &api.DeclareTableRequest{Target: api.At(name)})
	if err != nil {
		return nil, err
	}
	loc, err := lance.ParseLocation(*resp.Location)
	return &table{name: name, key: loc.Key(), next: 1}, err
}

// stage puts the staged manifest of a table's next version, without a delay, as its writer did some time ago.
func (s *site) stage(ctx context.Context, tb *table) (api.StagedVersion, error) {
	v := tb.next
	tb.next++
	data := lancetest.Manifest(lancetest.Spec{Version: lance.VersionNumber(v), Read: lance.VersionNumber(v - 1), Mark: uuid.NewString()})
	size := int64(len(data))
	path := lance.ManifestKey(tb.key, lance.Main, lance.VersionNumber(v), lance.SchemeV2) + "-" + uuid.NewString()
	_, err := s.direct.PutIfAbsent(ctx, path, data)
	return api.StagedVersion{Version: v, ManifestPath: path, ManifestSize: &size}, err
}
