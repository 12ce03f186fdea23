package azure

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/lancerest/lancerest/internal/objstore"
)

// directoryMark is the metadata of what is a directory: of one in a hierarchical namespace, and of what older programs leave in a flat one.
const directoryMark = "hdi_isfolder"

// Get implements objstore.Store.
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return nil, objstore.Info{}, err
	}
	var data []byte
	var info objstore.Info
	_, err := s.try(ctx, func() error {
		var err error
		data, info, err = s.get(ctx, key, limit)
		return err
	})
	if err != nil {
		return nil, objstore.Info{}, fmt.Errorf("read %q: %w", key, missing(err))
	}
	return data, info, nil
}

func (s *Store) get(ctx context.Context, key string, limit int64) ([]byte, objstore.Info, error) {
	response, err := s.container.NewBlobClient(key).DownloadStream(ctx, nil)
	if err != nil {
		return nil, objstore.Info{}, err
	}
	defer response.Body.Close()
	if isDirectory(response.Metadata) {
		return nil, objstore.Info{}, objstore.ErrNotFound
	}
	info, err := described(key, response.ContentLength, response.ETag, response.LastModified)
	if err != nil {
		return nil, objstore.Info{}, err
	}
	if limit > 0 && info.Size > limit {
		return nil, objstore.Info{}, fmt.Errorf("%w: it has %d bytes, the limit is %d", objstore.ErrTooLarge, info.Size, limit)
	}
	data := make([]byte, info.Size)
	if _, err := io.ReadFull(response.Body, data); err != nil {
		return nil, objstore.Info{}, fmt.Errorf("the answer was cut short: %w", io.ErrUnexpectedEOF)
	}
	return data, info, nil
}

// Head implements objstore.Store.
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	info, _, err := s.look(ctx, key)
	if err != nil {
		return objstore.Info{}, fmt.Errorf("look at %q: %w", key, missing(err))
	}
	return info, nil
}

// look describes an object, and tells the mark of the put that made it.
func (s *Store) look(ctx context.Context, key string) (objstore.Info, string, error) {
	var properties blob.GetPropertiesResponse
	_, err := s.try(ctx, func() error {
		var err error
		properties, err = s.container.NewBlobClient(key).GetProperties(ctx, nil)
		return err
	})
	if err != nil {
		return objstore.Info{}, "", err
	}
	if isDirectory(properties.Metadata) {
		return objstore.Info{}, "", objstore.ErrNotFound
	}
	info, err := described(key, properties.ContentLength, properties.ETag, properties.LastModified)
	return info, metadata(properties.Metadata, mark), err
}

// described makes the description of an object from what an answer says.
func described(key string, size *int64, etag *azcore.ETag, modified *time.Time) (objstore.Info, error) {
	if size == nil || etag == nil || *etag == "" || modified == nil {
		return objstore.Info{}, fmt.Errorf("the answer lacks the object's size, ETag or time")
	}
	return objstore.Info{Key: key, Size: *size, ETag: quoted(*etag), Modified: modified.UTC().Truncate(time.Second)}, nil
}

// quoted is an ETag as headers have it; listings leave the quotes out.
func quoted(etag azcore.ETag) string {
	if strings.HasPrefix(string(etag), `"`) {
		return string(etag)
	}
	return `"` + string(etag) + `"`
}

// isDirectory reports whether a blob's metadata says that it stands for a directory.
func isDirectory(all map[string]*string) bool {
	return strings.EqualFold(metadata(all, directoryMark), "true")
}

// metadata is the value of one name, which answers spell as headers are spelled; "" if there is none.
func metadata(all map[string]*string, name string) string {
	for n, value := range all {
		if strings.EqualFold(n, name) && value != nil {
			return *value
		}
	}
	return ""
}
