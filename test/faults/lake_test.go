//go:build unix

package faults_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/lance/lancetest"
	"github.com/lancerest/lancerest/internal/objstore"
)

// operations are what the tests ask of a catalog, in this process or over HTTP.
type operations interface {
	DeclareTable(context.Context, *api.DeclareTableRequest) (*api.DeclareTableResponse, error)
	BatchCreateTableVersions(context.Context, *api.BatchCreateTableVersionsRequest) (*api.BatchCreateTableVersionsResponse, error)
	DescribeTableVersion(context.Context, *api.DescribeTableVersionRequest) (*api.DescribeTableVersionResponse, error)
	ListTableVersions(context.Context, *api.ListTableVersionsRequest) (*api.ListTableVersionsResponse, error)
}

// table is a table on this machine's disk, or in a bucket.
type table struct {
	name  string
	key   string // of its directory, relative to the root of the storage
	files files
}

// files is where manifests lie, for what tests do to them past any server.
type files interface {
	read(key string) ([]byte, error)
	// write makes an object that is not there.
	write(key string, data []byte) error
}

// disk is the file system of this machine.
type disk struct{}

func (disk) read(key string) ([]byte, error) { return os.ReadFile("/" + key) }

func (disk) write(key string, data []byte) error {
	name := "/" + key
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

// bucket is the bucket of the tests' S3 server.
type bucket struct{ objects objstore.Store }

func (b bucket) read(key string) ([]byte, error) {
	data, _, err := b.objects.Get(context.Background(), key, 0)
	return data, err
}

func (b bucket) write(key string, data []byte) error {
	_, err := b.objects.PutIfAbsent(context.Background(), key, data)
	return err
}

// filesOf returns where a table lies.
func filesOf(t *testing.T, at lance.Location) files {
	t.Helper()
	if at.Scheme == "file" {
		return disk{}
	}
	return bucket{openBucket(t)}
}

func declare(t *testing.T, c operations, name string) table {
	t.Helper()
	resp, err := c.DeclareTable(context.Background(), &api.DeclareTableRequest{Target: api.At(name)})
	if err != nil {
		t.Fatal(err)
	}
	loc, err := lance.ParseLocation(*resp.Location)
	if err != nil {
		t.Fatal(err)
	}
	return table{name: name, key: loc.Key(), files: filesOf(t, loc)}
}

// final is the key of a version's manifest.
func (tb table) final(v int64) string {
	return lance.ManifestKey(tb.key, lance.Main, lance.VersionNumber(v), lance.SchemeV2)
}

// stage writes a staged manifest and returns the entry of a batch that asks to publish it. Its mark names the manifest.
func (tb table) stage(v int64) (api.CreateTableVersionEntry, error) {
	mark := uuid.NewString()
	path := tb.final(v) + "-" + uuid.NewString()
	err := tb.files.write(path, lancetest.Manifest(lancetest.Spec{Version: lance.VersionNumber(v), Read: lance.VersionNumber(v - 1), Mark: mark}))
	return api.CreateTableVersionEntry{ID: []string{tb.name}, StagedVersion: api.StagedVersion{
		Version: v, ManifestPath: path, Metadata: map[string]string{"mark": mark},
	}}, err
}

// commitOf is a batch with one version of each of some tables.
func commitOf(v int64, tables ...table) (*api.BatchCreateTableVersionsRequest, error) {
	req := &api.BatchCreateTableVersionsRequest{}
	for _, tb := range tables {
		e, err := tb.stage(v)
		if err != nil {
			return nil, err
		}
		req.Entries = append(req.Entries, e)
	}
	return req, nil
}

// latest returns the latest version of a table with the mark of its manifest, 0 for none.
func latest(c operations, tb table) (int64, string, error) {
	resp, err := c.DescribeTableVersion(context.Background(), &api.DescribeTableVersionRequest{Target: api.At(tb.name)})
	if err != nil {
		if api.CodeOf(err) == api.CodeTableVersionNotFound {
			err = nil
		}
		return 0, "", err
	}
	data, err := tb.files.read(resp.Version.ManifestPath)
	if err != nil {
		return 0, "", fmt.Errorf("version %d of %s was shown and cannot be read: %w", resp.Version.Version, tb.name, err)
	}
	return resp.Version.Version, lancetest.Mark(data), nil
}

// numbers lists the versions of a table.
func numbers(t *testing.T, c operations, tb table) []int64 {
	t.Helper()
	var all []int64
	req := &api.ListTableVersionsRequest{Target: api.At(tb.name)}
	for {
		resp, err := c.ListTableVersions(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range resp.Versions {
			all = append(all, v.Version)
		}
		if req.PageToken = resp.PageToken; req.PageToken == nil {
			return all
		}
	}
}

// consecutive fails the test unless a table has the versions from 1 on without a gap, and returns how many.
func consecutive(t *testing.T, c operations, tb table) int64 {
	t.Helper()
	got := numbers(t, c, tb)
	for i, v := range got {
		if v != int64(i)+1 {
			t.Fatalf("versions of %s are not consecutive: %v", tb.name, got)
		}
	}
	return int64(len(got))
}

// mark returns the mark of the manifest of a version, "" where there is none.
func (tb table) mark(v int64) string {
	data, err := tb.files.read(tb.final(v))
	if err != nil {
		return ""
	}
	return lancetest.Mark(data)
}

// marks returns the mark that each entry of a batch was staged with.
func marks(req *api.BatchCreateTableVersionsRequest) []string {
	var all []string
	for _, e := range req.Entries {
		all = append(all, e.Metadata["mark"])
	}
	return slices.Clip(all)
}
