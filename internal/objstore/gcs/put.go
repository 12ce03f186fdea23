package gcs

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"

	"cloud.google.com/go/storage"
	"github.com/google/uuid"
	"github.com/googleapis/gax-go/v2"

	"github.com/lancerest/lancerest/internal/objstore"
)

// largest is how many bytes go up in one request. More go in parts of this size, each of which is sent again by itself; the object appears with the
// last one, and the condition is judged then.
const largest = 16 << 20

// mark is the name of the metadata by which a put knows its own object again. A first try whose answer was lost may have been carried out, and
// the second one is then refused because of it.
const mark = "lancerest-put"

// PutIfAbsent implements objstore.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	info, err := s.put(ctx, key, data, storage.Conditions{DoesNotExist: true})
	if status(err) == http.StatusPreconditionFailed {
		err = objstore.ErrExists
	}
	if err != nil {
		return objstore.Info{}, fmt.Errorf("put %q: %w", key, kind(err))
	}
	return info, nil
}

// PutIf implements objstore.Store.
func (s *Store) PutIf(ctx context.Context, key, etag string, data []byte) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	generation, ok := generationOf(etag)
	if !ok {
		return objstore.Info{}, fmt.Errorf("replace %q: %w", key, objstore.ErrChanged)
	}
	info, err := s.put(ctx, key, data, storage.Conditions{GenerationMatch: generation})
	if status(err) == http.StatusPreconditionFailed {
		err = objstore.ErrChanged
	}
	if err != nil {
		return objstore.Info{}, fmt.Errorf("replace %q: %w", key, kind(err))
	}
	return info, nil
}

// put sends an object, again where that may help. If a later try finds the condition failed, it is looked whether an earlier one is the reason.
func (s *Store) put(ctx context.Context, key string, data []byte, condition storage.Conditions) (objstore.Info, error) {
	id := uuid.NewString()
	failed := 0
	again := func(err error) bool {
		failed++
		return failed < tries && mayPass(err)
	}
	object := s.bucket.Object(key).If(condition)
	pauses := s.pauses
	for {
		attrs, err := send(ctx, object, data, id, again)
		if err == nil {
			return infoOf(attrs), nil
		}
		if failed > 0 && status(err) == http.StatusPreconditionFailed {
			return s.own(ctx, key, id, err)
		}
		if !again(err) {
			return objstore.Info{}, err
		}
		if ended := gax.Sleep(ctx, pauses.Pause()); ended != nil {
			return objstore.Info{}, fmt.Errorf("%w, after: %w", ended, err)
		}
	}
}

// send sends an object once. Of one in parts, the parts are sent again as long as again allows it.
func send(ctx context.Context, object *storage.ObjectHandle, data []byte, id string, again func(error) bool) (*storage.ObjectAttrs, error) {
	inParts := len(data) >= largest
	w := object.Retryer(storage.WithErrorFunc(func(err error) bool { return inParts && again(err) })).NewWriter(ctx)
	w.ChunkSize = min(len(data)+1, largest) // it is held in memory
	w.ContentType = "application/octet-stream"
	w.CRC32C, w.SendCRC32C = crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)), true
	w.Metadata = map[string]string{mark: id}
	_, err := w.Write(data)
	// The store's answer comes with Close, also when it made a write fail.
	if err := errors.Join(w.Close(), err); err != nil {
		return nil, err
	}
	return w.Attrs(), nil
}

// own returns the object under key if it is the one that a put with this id sent; else the refusal that the put met.
func (s *Store) own(ctx context.Context, key, id string, refusal error) (objstore.Info, error) {
	attrs, err := s.bucket.Object(key).Attrs(ctx)
	switch {
	case err == nil && attrs.Metadata[mark] == id:
		return infoOf(attrs), nil
	case err != nil && status(err) != http.StatusNotFound:
		return objstore.Info{}, fmt.Errorf("whether an earlier try was carried out is not known: %w", err)
	}
	return objstore.Info{}, refusal
}
