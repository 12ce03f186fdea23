// Package auth says who a caller is. It decides nothing about tables: rules stand in package catalog, which asks an Authorizer.
package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Credentials are what a request carries: x-api-key and the Bearer token of Authorization, or the body's identity where those
// headers are absent (specification, Identity: headers win). They are never logged, stored or echoed.
type Credentials struct {
	APIKey string
	Token  string
}

// Principal is a known caller. Name is what records and logs show; it never holds a secret.
type Principal struct {
	Name string
}

// Authenticator turns credentials into a principal, or returns an *api.Error with code Unauthenticated.
type Authenticator interface {
	Authenticate(ctx context.Context, c Credentials) (Principal, error)
}

// Open lets everybody in. A caller who presents a credential is told apart from others by a keyed fingerprint of it, so that
// the record of a transaction can say which of them it was without giving the secret away.
type Open struct {
	// Key is a secret of the catalog, which makes fingerprints useless outside it.
	Key []byte
}

// Authenticate never fails.
func (o Open) Authenticate(_ context.Context, c Credentials) (Principal, error) {
	switch {
	case c.APIKey != "":
		return Principal{Name: "api_key:" + o.fingerprint(c.APIKey)}, nil
	case c.Token != "":
		return Principal{Name: "token:" + o.fingerprint(c.Token)}, nil
	}
	return Principal{Name: "anonymous"}, nil
}

func (o Open) fingerprint(secret string) string {
	mac := hmac.New(sha256.New, o.Key)
	mac.Write([]byte(secret))
	return hex.EncodeToString(mac.Sum(nil)[:6])
}

type contextKey struct{}

// WithPrincipal returns a context that carries the caller.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// PrincipalFrom returns the caller of a request, "anonymous" where none was set.
func PrincipalFrom(ctx context.Context) Principal {
	if p, ok := ctx.Value(contextKey{}).(Principal); ok {
		return p
	}
	return Principal{Name: "anonymous"}
}

type credentialsKey struct{}

// WithCredentials returns a context that carries what a request was authenticated by, for what works for the caller by further requests.
func WithCredentials(ctx context.Context, c Credentials) context.Context {
	return context.WithValue(ctx, credentialsKey{}, c)
}

// CredentialsFrom returns what WithCredentials put into a context, nothing where that was not called.
func CredentialsFrom(ctx context.Context) Credentials {
	c, _ := ctx.Value(credentialsKey{}).(Credentials)
	return c
}

// Delegate is for whom work is done that has no credentials of its caller: a job, whose id it is, goes on when those are long gone.
type Delegate struct {
	Principal Principal
	Job       string
}

type delegateKey struct{}

// WithDelegate returns a context of work that is done for somebody else, by further requests.
func WithDelegate(ctx context.Context, d Delegate) context.Context {
	return context.WithValue(WithPrincipal(ctx, d.Principal), delegateKey{}, d)
}

// DelegateFrom returns what WithDelegate put into a context, and whether it was called.
func DelegateFrom(ctx context.Context) (Delegate, bool) {
	d, ok := ctx.Value(delegateKey{}).(Delegate)
	return d, ok
}
