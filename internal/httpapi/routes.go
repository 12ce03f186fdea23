package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/engine"
	"github.com/lancerest/lancerest/internal/lance"
)

// call performs an operation on its decoded request, a pointer to the operation's request struct.
type call func(ctx context.Context, request any) (any, error)

// equip adds to the response of an operation, a pointer to its response struct, what is the caller's alone and must not be kept: keys.
type equip func(ctx context.Context, request, response any)

// row binds one operation of the specification to what performs it.
type row struct {
	op    api.Operation
	call  call
	equip equip // nil for nothing
	// engine says that the engine performs it, or may.
	engine bool
}

// rows returns the 54 operations in the order of the specification. Those that the catalog does not perform itself go to the
// engine.
func rows(c *catalog.Catalog, e engine.Engine) []row {
	calls := map[string]call{
		"CreateNamespace":          on(c.CreateNamespace),
		"ListNamespaces":           on(c.ListNamespaces),
		"DescribeNamespace":        on(c.DescribeNamespace),
		"DropNamespace":            on(c.DropNamespace),
		"NamespaceExists":          on(c.NamespaceExists),
		"ListTables":               on(c.ListTables),
		"ListAllTables":            on(listAllTables(c)),
		"RegisterTable":            on(c.RegisterTable),
		"DescribeTable":            on(describeTable(c)),
		"TableExists":              on(c.TableExists),
		"DropTable":                on(c.DropTable),
		"DeregisterTable":          on(c.DeregisterTable),
		"RenameTable":              on(renameTable(c)),
		"DeclareTable":             on(c.DeclareTable),
		"ListTableVersions":        on(c.ListTableVersions),
		"CreateTableVersion":       on(c.CreateTableVersion),
		"DescribeTableVersion":     on(c.DescribeTableVersion),
		"BatchDeleteTableVersions": on(c.BatchDeleteTableVersions),
		"BatchCreateTableVersions": on(c.BatchCreateTableVersions),
		"BatchCommitTables":        on(c.BatchCommitTables),
		"GetTableStats":            on(c.GetTableStats),
		"CountTableRows":           on(countTableRows(c, e)),
		"ListTableIndices":         on(c.ListTableIndices),
		"DescribeTableIndexStats":  on(c.DescribeTableIndexStats),
		"ListTableTags":            on(c.ListTableTags),
		"GetTableTagVersion":       on(c.GetTableTagVersion),
		"CreateTableTag":           on(c.CreateTableTag),
		"UpdateTableTag":           on(c.UpdateTableTag),
		"DeleteTableTag":           on(c.DeleteTableTag),
		"ListTableBranches":        on(c.ListTableBranches),
		"DescribeTransaction":      on(c.DescribeTransaction),
		"AlterTransaction":         on(c.AlterTransaction),
	}
	equips := map[string]equip{
		"DeclareTable": func(ctx context.Context, request, response any) {
			c.EquipDeclared(ctx, request.(*api.DeclareTableRequest), response.(*api.DeclareTableResponse))
		},
	}
	var rows []row
	for _, op := range api.Operations() {
		perform, ok := calls[op.Name]
		if !ok {
			perform = func(ctx context.Context, request any) (any, error) { return e.Do(ctx, op.Name, request) }
		}
		rows = append(rows, row{op: op, call: perform, equip: equips[op.Name], engine: !ok || op.Name == "CountTableRows"})
	}
	return rows
}

// on adapts a method of the catalog.
func on[Req, Resp any](method func(context.Context, *Req) (*Resp, error)) call {
	return func(ctx context.Context, request any) (any, error) {
		resp, err := method(ctx, request.(*Req))
		if err != nil {
			return nil, err
		}
		return resp, nil
	}
}

// listAllTables gives the operation the request's delimiter. LanceDB's db:// client reads the same route as a list of the root's
// own tables (client contract, fact 104).
func listAllTables(c *catalog.Catalog) func(context.Context, *api.ListTablesRequest) (*api.ListTablesResponse, error) {
	return func(ctx context.Context, req *api.ListTablesRequest) (*api.ListTablesResponse, error) {
		d := dialectFrom(ctx)
		if d.cloud {
			return c.ListTables(ctx, req)
		}
		return c.ListAllTables(ctx, req, d.delimiter)
	}
}

// describeTable answers LanceDB's db:// client, which opens tables by this operation alone, with all that it needs for that, whatever it asks
// for, and in its own names of types (client contract, facts 91 and 92).
func describeTable(c *catalog.Catalog) func(context.Context, *api.DescribeTableRequest) (*api.DescribeTableResponse, error) {
	return func(ctx context.Context, req *api.DescribeTableRequest) (*api.DescribeTableResponse, error) {
		if dialectFrom(ctx).cloud {
			return c.DescribeOpenTable(ctx, req)
		}
		return c.DescribeTable(ctx, req)
	}
}

// countTableRows leaves the rows that match a condition to the engine.
func countTableRows(c *catalog.Catalog, e engine.Engine) func(context.Context, *api.CountTableRowsRequest) (*api.CountTableRowsResponse, error) {
	return func(ctx context.Context, req *api.CountTableRowsRequest) (*api.CountTableRowsResponse, error) {
		if req.Predicate == nil {
			return c.CountTableRows(ctx, req)
		}
		resp, err := e.Do(ctx, "CountTableRows", req)
		if err != nil {
			return nil, err
		}
		return resp.(*api.CountTableRowsResponse), nil
	}
}

// renameTable refuses a new name that the caller could not write with its own delimiter (case A2).
func renameTable(c *catalog.Catalog) func(context.Context, *api.RenameTableRequest) (*api.RenameTableResponse, error) {
	return func(ctx context.Context, req *api.RenameTableRequest) (*api.RenameTableResponse, error) {
		if err := lance.CheckPath([]string{req.NewTableName}, dialectFrom(ctx).delimiter); err != nil {
			return nil, invalid(err)
		}
		return c.RenameTable(ctx, req)
	}
}

// router finds the row of a request by its escaped path, so that an encoded slash never splits an id (trap 12), and never
// redirects (trap 11).
type router struct {
	routes map[string]map[string]*row // by pattern, then by method
}

func newRouter(rows []row) *router {
	r := &router{routes: map[string]map[string]*row{}}
	for i := range rows {
		op := rows[i].op
		pattern := op.Path
		for _, variable := range []string{"{id}", "{index_name}"} {
			pattern = strings.Replace(pattern, variable, "*", 1)
		}
		r.add(pattern, op.Method, &rows[i])
		switch op.Name {
		case "CountTableRows", "ListTableTags":
			// Clients of the generation before use GET (client contract, fact 7).
			r.add(pattern, http.MethodGet, &rows[i])
		}
	}
	return r
}

func (r *router) add(pattern, method string, to *row) {
	if r.routes[pattern] == nil {
		r.routes[pattern] = map[string]*row{}
	}
	r.routes[pattern][method] = to
}

// match is a request's row and the variable parts of its path, still escaped.
type match struct {
	row   *row
	id    string
	index string
}

// find matches a method and an escaped path. Doubled slashes before /v1 and one slash at the end are taken as they are meant
// (client contract, facts 1 and 88). The error is an edgeError: 404 for an unknown route, 405 for a wrong method.
func (r *router) find(method, escaped string) (match, error) {
	segments := strings.Split(strings.TrimSuffix(strings.TrimLeft(escaped, "/"), "/"), "/")
	var m match
	for _, pattern := range patterns(segments) {
		methods, ok := r.routes[pattern.text]
		if !ok {
			continue
		}
		m.id, m.index = pattern.id, pattern.index
		if m.row, ok = methods[method]; ok {
			return m, nil
		}
		allowed := make([]string, 0, len(methods))
		for name := range methods {
			allowed = append(allowed, name)
		}
		slices.Sort(allowed)
		e := edge(http.StatusMethodNotAllowed, "method %s is not allowed here: use %s", method, strings.Join(allowed, " or "))
		e.allow = strings.Join(allowed, ", ")
		return m, e
	}
	return m, edge(http.StatusNotFound, "no operation has the path %q", escaped)
}

// candidate is one way to read a path.
type candidate struct {
	text, id, index string
}

// patterns returns the ways to read a path, the most literal first: as it stands, with an id as its third segment, with an
// index as its fifth too. Last comes a path that lacks its id: some URL libraries drop the segment "." of a root written with the
// delimiter "." (client contract, fact 4).
func patterns(segments []string) []candidate {
	literal := "/" + strings.Join(segments, "/")
	all := []candidate{{text: literal}}
	if len(segments) >= 4 {
		s := slices.Clone(segments)
		s[2] = "*"
		all = append(all, candidate{text: "/" + strings.Join(s, "/"), id: segments[2]})
		if len(segments) == 6 {
			s[4] = "*"
			all = append(all, candidate{text: "/" + strings.Join(s, "/"), id: segments[2], index: segments[4]})
		}
	}
	if len(segments) >= 3 && segments[1] == "namespace" {
		s := slices.Insert(slices.Clone(segments), 2, "*")
		all = append(all, candidate{text: "/" + strings.Join(s, "/"), id: "."})
	}
	return all
}
