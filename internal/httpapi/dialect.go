package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/lancerest/lancerest/internal/lance"
)

// dialect is how a caller speaks: the delimiter of its ids and which of the two families of clients it belongs to (client
// contract, trap 15).
type dialect struct {
	delimiter string
	// cloud says that the caller is LanceDB's own SDK on a db:// connection.
	cloud bool
}

// dialectOf tells how a request speaks. LanceDB's SDKs name themselves in headers (client contract, fact 89) and send no delimiter,
// which clients of the namespace specification always do. A slash at the end of the path alone is no sign: others write it too.
func dialectOf(r *http.Request) dialect {
	query := r.URL.Query()
	d := dialect{delimiter: lance.DefaultDelimiter}
	if given, ok := query["delimiter"]; ok {
		d.delimiter = given[0]
		return d
	}
	d.cloud = r.Header.Get("x-lancedb-database") != "" || strings.HasPrefix(r.UserAgent(), "LanceDB-")
	return d
}

type dialectKey struct{}

func withDialect(ctx context.Context, d dialect) context.Context {
	return context.WithValue(ctx, dialectKey{}, d)
}

func dialectFrom(ctx context.Context) dialect {
	if d, ok := ctx.Value(dialectKey{}).(dialect); ok {
		return d
	}
	return dialect{delimiter: lance.DefaultDelimiter}
}
