package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
)

// Databases says what the name of a database means, which LanceDB's SDKs send with every request (connect("db://NAME")).
type Databases string

// What it can mean.
const (
	// DatabaseOne: nothing; a server is one database.
	DatabaseOne Databases = "one"
	// DatabaseNamespace: a namespace below the root, made when it is first used, in which everything that such a client names lies.
	DatabaseNamespace Databases = "namespace"
)

// databaseHeader carries the name.
const databaseHeader = "X-Lancedb-Database"

// database returns the name of the database that a request is about, "" for the whole catalog. What the engine asks is about that: it has
// been told full ids.
func (h *Handler) database(r *http.Request) string {
	if h.opts.Databases != DatabaseNamespace || h.fromEngine(r) {
		return ""
	}
	return r.Header.Get(databaseHeader)
}

// enterDatabase puts all that a request names into its database, which it makes if there is none yet. Errors: 0 for requests that name things in a
// way of their own, 13 for a name that is none.
func (h *Handler) enterDatabase(ctx context.Context, q called) error {
	if q.database == "" {
		return nil
	}
	if err := lance.CheckPath([]string{q.database}, q.dialect.delimiter); err != nil {
		return invalid(err)
	}
	target, ok := q.request.(interface{ AsTarget() *api.Target })
	// A list of all tables is one of the database's own for LanceDB's remote SDK alone; others mean the whole catalog.
	if !ok || q.row.op.Name == "ListAllTables" && !q.dialect.cloud {
		return api.Errorf(api.CodeUnsupported, "%s reaches beyond one database: send it without the header %s", q.row.op.Name, databaseHeader)
	}
	t := target.AsTarget()
	if transaction := q.row.op.Name == "DescribeTransaction" || q.row.op.Name == "AlterTransaction"; transaction && len(t.ID) < 2 {
		return nil // its id alone is unique
	}
	t.ID = slices.Concat([]string{q.database}, t.ID)
	if rename, ok := q.request.(*api.RenameTableRequest); ok {
		if namespace, given := rename.Destination(); given {
			moved := slices.Concat([]string{q.database}, namespace)
			rename.NewNamespaceID, rename.NewNamespace = &moved, nil
		}
	}
	return h.makeDatabase(ctx, q.database)
}

func (h *Handler) makeDatabase(ctx context.Context, name string) error {
	_, err := h.opts.Catalog.NamespaceExists(ctx, &api.NamespaceExistsRequest{Target: api.At(name)})
	if err == nil || api.CodeOf(err) != api.CodeNamespaceNotFound {
		return err
	}
	mode := "ExistOk"
	_, err = h.opts.Catalog.CreateNamespace(ctx, &api.CreateNamespaceRequest{Target: api.At(name), Mode: &mode})
	return err
}
