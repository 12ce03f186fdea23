package objstore_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/lancerest/lancerest/internal/objstore"
)

func TestWithoutQuery(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	request := func(address string, cause error) error { return &url.Error{Op: "Put", URL: address, Err: cause} }
	signed := request("https://user:pw-"+secret+"@host.example/c/k?sv=1&sig="+secret, context.DeadlineExceeded)
	other := request("https://host.example/upload?upload_id=2"+secret, context.Canceled)
	for name, c := range map[string]struct {
		err  error
		want string
		is   error
	}{
		"one request":                   {signed, `Put "https://host.example/c/k": context deadline exceeded`, context.DeadlineExceeded},
		"wrapped":                       {fmt.Errorf("put %q: %w", "k", signed), `put "k": Put "https://host.example/c/k": context deadline exceeded`, context.DeadlineExceeded},
		"beside another cause":          {fmt.Errorf("%w, after: %w", objstore.ErrDenied, signed), `access denied, after: Put "https://host.example/c/k": context deadline exceeded`, objstore.ErrDenied},
		"two of them":                   {errors.Join(signed, other), "Put \"https://host.example/c/k\": context deadline exceeded\nPut \"https://host.example/upload\": context canceled", context.Canceled},
		"one in another":                {request("https://a.example/?x="+secret, signed), `Put "https://a.example/": Put "https://host.example/c/k": context deadline exceeded`, context.DeadlineExceeded},
		"written in an unexpected way":  {fmt.Errorf("failed at /c/k?sv=1&sig=%s: %w", secret, signed), "a request to the storage failed", context.DeadlineExceeded},
		"a URL that cannot be read":     {request("https://host.example/%zz?sig="+secret, context.Canceled), "a request to the storage failed", context.Canceled},
		"something else":                {objstore.ErrExists, "object exists", objstore.ErrExists},
		"a request without a query":     {request("https://host.example/c/k", context.Canceled), `Put "https://host.example/c/k": context canceled`, context.Canceled},
		"a query that is shown already": {objstore.WithoutQuery(signed), `Put "https://host.example/c/k": context deadline exceeded`, context.DeadlineExceeded},
	} {
		got := objstore.WithoutQuery(c.err)
		if got.Error() != c.want || strings.Contains(got.Error(), secret) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if !errors.Is(got, c.is) {
			t.Errorf("%s: %v is not %v any more", name, got, c.is)
		}
	}
	if err := objstore.WithoutQuery(nil); err != nil {
		t.Errorf("WithoutQuery(nil) = %v", err)
	}
}
