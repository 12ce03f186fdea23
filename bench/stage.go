package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lancerest/lancerest/internal/lance"
)

// manifest is version 1 of a table of four columns that pylance 14.0.2 wrote; the same with other numbers is what the clients commit.
//
//go:embed testdata/version1.manifest
var manifest []byte

// queue is the tables that one client commits to, and what is staged for them.
type queue struct {
	tables []table
	staged [][]stagedVersion   // one element a request
	last   lance.VersionNumber // the newest that was staged
}

// table is one table of a client's own.
type table struct {
	name     string
	versions string // its _versions directory
}

func (q *queue) next() ([]stagedVersion, bool) {
	if len(q.staged) == 0 {
		return nil, false
	}
	v := q.staged[0]
	q.staged = q.staged[1:]
	return v, true
}

// stage sees that each client has tables of its own, and enough staged manifests for a cell, which are written before it begins:
// that is the clients' work and no part of what is measured.
func (t *target) stage(ctx context.Context, purpose string, each int, duration time.Duration) ([]*queue, error) {
	queues := t.queues[purpose]
	if queues == nil {
		for client := range t.clients {
			q, err := t.newQueue(fmt.Sprintf("%s-%d", purpose, client), each)
			if err != nil {
				return nil, err
			}
			queues = append(queues, q)
		}
		t.queues[purpose] = queues
	}
	want := int(duration.Seconds()*t.fastest)/t.clients/each + 1
	var wg sync.WaitGroup
	errs := make([]error, len(queues))
	for i, q := range queues {
		wg.Go(func() { errs[i] = q.fill(ctx, want) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("stage manifests: %w", err)
		}
	}
	return queues, nil
}

// newQueue declares a client's tables.
func (t *target) newQueue(name string, each int) (*queue, error) {
	q := &queue{}
	for i := range each {
		table, err := t.declare(fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			return nil, err
		}
		q.tables = append(q.tables, table)
	}
	return q, nil
}

// declare declares a table and makes its directory, as writing its first data file would.
func (t *target) declare(name string) (table, error) {
	body, err := t.call(request(http.MethodPost, path(name, "declare"), t.address, idBody(name)))
	if err != nil {
		return table{}, err
	}
	var declared struct{ Location string }
	if err := json.Unmarshal(body, &declared); err != nil {
		return table{}, fmt.Errorf("read the answer to declare: %w", err)
	}
	location, err := url.Parse(declared.Location)
	if err != nil {
		return table{}, fmt.Errorf("read the location of table %s: %w", name, err)
	}
	made := table{name: name, versions: filepath.Join(location.Path, "_versions")}
	return made, os.MkdirAll(made.versions, 0o777)
}

// fill stages manifests until there are enough for so many requests.
func (q *queue) fill(ctx context.Context, requests int) error {
	for len(q.staged) < requests {
		if err := ctx.Err(); err != nil {
			return err
		}
		q.last++
		data, err := numbered(q.last)
		if err != nil {
			return err
		}
		versions := make([]stagedVersion, len(q.tables))
		for i, t := range q.tables {
			v, err := t.stage(q.last, data)
			if err != nil {
				return err
			}
			versions[i] = v
		}
		q.staged = append(q.staged, versions)
	}
	return nil
}

// stage writes one staged manifest as clients do, without a sync, and returns what asks for its commit.
func (t table) stage(v lance.VersionNumber, data []byte) (stagedVersion, error) {
	file := filepath.Join(t.versions, lance.ManifestName(v, lance.SchemeV2)+"-"+uuid.NewString())
	if err := os.WriteFile(file, data, 0o666); err != nil {
		return stagedVersion{}, err
	}
	return stagedVersion{
		ID: []string{namespace, t.name}, Version: int64(v), ManifestPath: strings.TrimPrefix(file, "/"), ManifestSize: len(data),
		ETag: fmt.Sprintf(`"%x-%x"`, v, len(data)), NamingScheme: "V2",
	}, nil
}

const (
	footerBytes                   = 16 // position of the message, format version, magic
	lengthBytes                   = 4  // before the message
	versionField protowire.Number = 3
)

// numbered returns the manifest with another version number and every other field as it is.
func numbered(v lance.VersionNumber) ([]byte, error) {
	footer := manifest[len(manifest)-footerBytes:]
	at := binary.LittleEndian.Uint64(footer)
	message := manifest[at+lengthBytes : len(manifest)-footerBytes]
	out := append([]byte{}, manifest[:at+lengthBytes]...)
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, fmt.Errorf("the manifest to stage: %w", protowire.ParseError(n))
		}
		if field == versionField && kind == protowire.VarintType {
			out = protowire.AppendVarint(protowire.AppendTag(out, field, kind), uint64(v))
		} else {
			out = append(out, message[:n]...)
		}
		message = message[n:]
	}
	binary.LittleEndian.PutUint32(out[at:], uint32(len(out))-uint32(at)-lengthBytes)
	return append(out, footer...), nil
}
