// Package httpapi is the edge: it matches requests to the operations of package api, decodes ids, queries and bodies, calls the
// catalog or the engine, and encodes answers and errors. It holds no rules about tables. net/http server types appear only here
// and in package app.
package httpapi

//go:generate go test -run Document -update .
