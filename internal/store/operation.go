package store

import "context"

// operationKey is the key of a context's operation.
type operationKey struct{}

// WithOperation returns a context whose Views and Updates belong to an operation: one of the wire, by its name, or what a server does by itself,
// such as "job purge". An implementation that tells of a slow statement passes the context on, so that it can be said whose it was.
func WithOperation(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, operationKey{}, name)
}

// OperationFrom returns the name that WithOperation gave to a context, "" where there is none.
func OperationFrom(ctx context.Context) string {
	name, _ := ctx.Value(operationKey{}).(string)
	return name
}
