// Package azure keeps objects as block blobs in a container of Azure Blob Storage.
//
// What it builds upon: a Put Blob or Put Block List with If-None-Match: * that creates a blob or refuses, with If-Match that replaces or
// refuses, and a Delete Blob with If-Match. Requests that failed for a reason that may pass are sent again. A put carries a mark of its own,
// by which one that was sent again recognises the work of its first try.
//
// Accounts with a hierarchical namespace have directories, which their listings and looks show as blobs with a mark. They are no objects here.
//
// What does not live here: which container is used for what, and keys for clients (package access/azure).
package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lancerest/lancerest/internal/objstore"
)

// Options say which container is meant and how it is reached. What is empty is taken from the environment, under the names that Lance's clients
// read; see the methods of settings.
type Options struct {
	// Container is the name of the container, which must exist.
	Container string
	// Account is the name of the storage account.
	Account string
	// Endpoint is the URL of the account's Blob service, where it is not https://ACCOUNT.blob.core.windows.net.
	Endpoint string
	// Credentials to use instead of those that would be found: the account's key, a shared access signature, or an access token.
	AccountKey, SAS, Token string
	// BlockSize is the size of the blocks in which an object is put that has more bytes than two of them (default 16 MiB).
	BlockSize int
	// PageSize is how many objects one request lists (default 5,000, which is the most).
	PageSize int32
	// Pause is the bound of the first pause before a request is sent again (default 100 ms).
	Pause time.Duration
	// HTTPClient sends the requests (default: one of its own).
	HTTPClient *http.Client
}

// Store is an objstore.Store in a container. Create it with New.
type Store struct {
	container *container.Client
	settings  Settings
	block     int
	pageSize  *int32
	pause     time.Duration
}

var _ objstore.Store = (*Store)(nil)

// New returns the store in a container. It sends no request: whether the container is there, and the credentials are good, shows with the first
// use. The error says what is wrong with the options or the environment.
func New(o Options) (*Store, error) {
	if o.Container == "" || strings.ContainsAny(o.Container, "/@") {
		return nil, fmt.Errorf("container %q of Azure Blob Storage: give the name alone, such as \"my-container\"", o.Container)
	}
	settings, err := o.find()
	if err != nil {
		return nil, fmt.Errorf("container %q of Azure Blob Storage: %w", o.Container, err)
	}
	client, err := settings.client(o.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("container %q of Azure Blob Storage: %w", o.Container, err)
	}
	s := &Store{container: client, settings: settings, block: o.BlockSize, pause: o.Pause}
	if o.PageSize != 0 {
		s.pageSize = &o.PageSize
	}
	if s.block == 0 {
		s.block = 16 << 20
	}
	if s.pause == 0 {
		s.pause = firstPause
	}
	return s, nil
}

// Settings returns how the store reaches its container.
func (s *Store) Settings() Settings { return s.settings }

// ready is the check that opens every method on one key.
func ready(ctx context.Context, key string) error {
	if err := errors.Join(objstore.CheckKey(key), checkSlashes(key)); err != nil {
		return err
	}
	if n := len([]rune(key)); n > keyMax {
		return fmt.Errorf("%w %q…: it has %d characters, at most %d are allowed", objstore.ErrInvalidKey, key[:80], n, keyMax)
	}
	return ctx.Err()
}

// checkSlashes refuses keys that are others' keys to the service: it takes a backslash for a slash.
func checkSlashes(key string) error {
	if strings.Contains(key, `\`) {
		return fmt.Errorf("%w %q: Azure takes a backslash in it for a slash", objstore.ErrInvalidKey, key)
	}
	return nil
}

// checkPrefix is objstore.CheckPrefix with that.
func checkPrefix(prefix string) error {
	return errors.Join(objstore.CheckPrefix(prefix), checkSlashes(prefix))
}

// keyMax is the length of the longest name of a blob.
const keyMax = 1024
