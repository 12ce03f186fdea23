package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

const (
	namespaceByPath = `
SELECT id, parent, path, properties, created_at, COALESCE(location, '')
FROM objects
WHERE kind = 1 AND path = $1`

	// The root lies under itself with an empty name, which sorts after no name and so never appears.
	namespacesBelow = `
SELECT id, parent, path, properties, created_at, COALESCE(location, '')
FROM objects
WHERE kind = 1 AND state = 1 AND parent = $1 AND name > $2
ORDER BY name
LIMIT $3`

	insertNamespace = `
INSERT INTO objects (id, kind, parent, name, state, path, properties, created_at, location)
SELECT $1, 1, p.id, $2, 1, $3, $4, $5, NULLIF($8, '/')
FROM objects p
WHERE p.id = $6 AND p.kind = 1 AND p.path = $7
ON CONFLICT DO NOTHING`

	namespaceAt = `SELECT id FROM objects WHERE id = $1 AND kind = 1 AND path = $2`

	namespaceLives = `SELECT id FROM objects WHERE id = $1 AND kind + 0 = 1`

	nameTaken = `SELECT id FROM objects WHERE kind IN (1, 2) AND parent = $1 AND name = $2 AND state = 1`

	deleteNamespace = `DELETE FROM objects WHERE id = $1 AND kind + 0 = 1 AND id <> 0`
)

// Namespace implements store.NamespaceReader.
func (s reader) Namespace(path lance.NamespaceID) (lance.Namespace, error) {
	column, ok := encodePath(path)
	if !ok {
		return lance.Namespace{}, notFound("namespace", fmt.Sprintf("%q", path))
	}
	var ns lance.Namespace
	found, err := one(s, namespaceByPath, []any{column}, func(r row) (err error) {
		ns, err = scanNamespace(r)
		return err
	})
	if err != nil {
		return lance.Namespace{}, fmt.Errorf("look up namespace %q: %w", path, err)
	}
	if !found {
		return lance.Namespace{}, notFound("namespace", fmt.Sprintf("%q", path))
	}
	return ns, nil
}

// ListNamespaces implements store.NamespaceReader.
func (s reader) ListNamespaces(parent lance.ObjectID, after string, limit int) ([]lance.Namespace, error) {
	var list []lance.Namespace
	err := s.query(namespacesBelow, [][]any{{int64(parent), after, int64(limit)}}, func(_ int, r row) error {
		ns, err := scanNamespace(r)
		list = append(list, ns)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list namespaces below %d: %w", parent, err)
	}
	return list, nil
}

// InsertNamespace implements store.NamespaceWriter.
func (t *tx) InsertNamespace(ns lance.Namespace) error {
	path, ok := encodePath(ns.Path)
	if !ok || path == "" {
		return fmt.Errorf("insert namespace %q: the path is empty or holds a name that cannot be stored", ns.Path)
	}
	parent, _ := encodePath(ns.Path[:len(ns.Path)-1])
	properties, err := encodeMap(ns.Properties)
	if err != nil {
		return fmt.Errorf("insert namespace %q: %w", ns.Path, err)
	}
	if ns.Location != "" {
		if around, err := t.around(ns.Location); err != nil || around[0] != "" {
			return fmt.Errorf("insert namespace %q at %q: %w", ns.Path, ns.Location, errOr(err, store.ErrLocationTaken))
		}
	}
	n, err := change(t, insertNamespace, int64(ns.ID), ns.Name(), path, properties, encodeTime(ns.CreatedAt), int64(ns.Parent), parent, ns.Location+"/")
	if err != nil {
		return fmt.Errorf("insert namespace %q: %w", ns.Path, err)
	}
	if n == 1 {
		return nil
	}
	if found, err := exists(t, namespaceAt, int64(ns.Parent), parent); err != nil || !found {
		return errOr(err, notFound("parent namespace", ns.Parent))
	}
	if err := t.checkName(ns.Parent, ns.Name()); err != nil {
		return fmt.Errorf("insert namespace %q: %w", ns.Path, err)
	}
	return t.runAgain("namespace", ns.ID)
}

// DeleteNamespace implements store.NamespaceWriter. The root cannot be deleted: it is answered as not found.
func (t *tx) DeleteNamespace(id lance.ObjectID) error {
	n, err := change(t, deleteNamespace, int64(id))
	if err != nil {
		return fmt.Errorf("delete namespace %d: %w", id, err)
	}
	if n == 0 {
		return notFound("namespace", id)
	}
	return nil
}

func scanNamespace(r row) (lance.Namespace, error) {
	properties, err := decodeMap(r.Text(3))
	return lance.Namespace{
		ID:         lance.ObjectID(r.Int(0)),
		Parent:     lance.ObjectID(r.Int(1)),
		Path:       slices.Clip(decodePath(r.Text(2))),
		Properties: properties,
		CreatedAt:  decodeTime(r.Int(4)),
		Location:   strings.TrimSuffix(r.Text(5), "/"),
	}, err
}

// errOr returns err, or otherwise where err is nil.
func errOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
