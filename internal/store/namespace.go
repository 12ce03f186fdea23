package store

import "github.com/lancerest/lancerest/internal/lance"

// NamespaceReader looks at namespaces.
type NamespaceReader interface {
	// Namespace returns the live namespace at path; the root always exists. ErrNotFound if there is none.
	Namespace(path lance.NamespaceID) (lance.Namespace, error)
	// ListNamespaces returns up to limit direct children of parent whose names sort (bytewise) after the given one, in order.
	ListNamespaces(parent lance.ObjectID, after string, limit int) ([]lance.Namespace, error)
}

// NamespaceWriter changes namespaces.
type NamespaceWriter interface {
	// InsertNamespace adds ns under ns.Parent with ns.ID from NewID. ErrExists if a live namespace or table has the name there;
	// ErrNotFound if the parent is gone; ErrLocationTaken if its location lies at or inside one that a table claims.
	InsertNamespace(ns lance.Namespace) error
	// DeleteNamespace removes a namespace. The caller has seen in the same transaction that it has no children.
	// ErrNotFound if it is gone.
	DeleteNamespace(id lance.ObjectID) error
}
