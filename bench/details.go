package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// largeFragments is how many fragments the tables have that are described in full, and largeTables how many such tables there are.
	largeFragments = 10_000
	largeTables    = 8
	// largePurpose keeps, among the target's queues, that they are there.
	largePurpose = "details"

	fragmentsField   protowire.Number = 2
	fragmentIDField  protowire.Number = 1
	maxFragmentField protowire.Number = 11
)

// details asks for full descriptions of large tables at random: schema, metadata and counts.
func details(_ context.Context, t *target, _ time.Duration) ([]source, error) {
	if t.queues[largePurpose] == nil {
		if err := t.makeLarge(); err != nil {
			return nil, fmt.Errorf("make tables of %d fragments: %w", largeFragments, err)
		}
		t.queues[largePurpose] = []*queue{}
	}
	return t.each(func(int) source {
		return func() []byte {
			table := largeName(rand.IntN(largeTables))
			body := []byte(`{"id":["` + namespace + `","` + table + `"],"load_detailed_metadata":true}`)
			return request(http.MethodPost, path(table, "describe")+"&load_detailed_metadata=true", t.address, body)
		}
	}), nil
}

func largeName(i int) string { return "large-" + strconv.Itoa(i) }

// makeLarge commits the large tables. Their data files are not there: a description needs none.
func (t *target) makeLarge() error {
	data, err := largeManifest()
	if err != nil {
		return err
	}
	for i := range largeTables {
		table, err := t.declare(largeName(i))
		if err != nil {
			return err
		}
		v, err := table.stage(1, data)
		if err != nil {
			return err
		}
		if _, err := t.call(request(http.MethodPost, path(table.name, "version/create"), t.address, encode(v))); err != nil {
			return err
		}
	}
	return nil
}

// largeManifest returns the manifest with its fragment repeated, each time under an id of its own.
func largeManifest() ([]byte, error) {
	footer := manifest[len(manifest)-footerBytes:]
	at := binary.LittleEndian.Uint64(footer)
	message := manifest[at+lengthBytes : len(manifest)-footerBytes]
	out := append([]byte{}, manifest[:at+lengthBytes]...)
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, fmt.Errorf("the manifest to repeat: %w", protowire.ParseError(n))
		}
		if field == fragmentsField && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(message)
			fragment, _ := protowire.ConsumeBytes(message[tag:])
			for id := range uint64(largeFragments) {
				// Of a field that stands there twice the last one counts.
				numbered := protowire.AppendVarint(protowire.AppendTag(append([]byte{}, fragment...), fragmentIDField, protowire.VarintType), id)
				out = protowire.AppendBytes(protowire.AppendTag(out, fragmentsField, protowire.BytesType), numbered)
			}
		} else if field != maxFragmentField {
			out = append(out, message[:n]...)
		}
		message = message[n:]
	}
	out = protowire.AppendVarint(protowire.AppendTag(out, maxFragmentField, protowire.VarintType), largeFragments-1)
	binary.LittleEndian.PutUint32(out[at:], uint32(len(out))-uint32(at)-lengthBytes)
	return append(out, footer...), nil
}
