package httpapi

import (
	"net/http"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/auth"
)

// credentials returns who calls: the headers x-api-key and Authorization: Bearer, and the body's identity where those are absent
// (specification, Identity).
func credentials(h http.Header, identity *api.Identity) auth.Credentials {
	c := auth.Credentials{APIKey: h.Get("x-api-key")}
	if scheme, token, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
		c.Token = strings.TrimSpace(token)
	}
	if identity == nil || c.APIKey != "" || c.Token != "" {
		return c
	}
	if identity.APIKey != nil {
		c.APIKey = *identity.APIKey
	}
	if identity.AuthToken != nil {
		c.Token = *identity.AuthToken
	}
	return c
}

// contextHeader begins the older form of context headers.
const contextHeader = "x-lance-ctx-"

// mappedHeader begins the context keys that stand for headers.
const mappedHeader = "header."

// contextOf gathers a request's context: what the body says, x-lance-ctx-<key> headers, and as header.<name> every header that is
// the caller's own (specification, Context). The body wins. What by its name may be a secret is left out wherever it stands.
func contextOf(h http.Header, body map[string]string) map[string]string {
	all := map[string]string{}
	folded := map[string]bool{}
	for key, value := range body {
		if secretName(key) {
			continue
		}
		all[key] = value
		folded[strings.ToLower(key)] = true
	}
	for name, values := range h {
		lower := strings.ToLower(name)
		key, plain := strings.CutPrefix(lower, contextHeader)
		if !plain {
			if transportHeader(lower) {
				continue
			}
			key = mappedHeader + lower
		}
		if key != "" && !folded[key] && !secretName(key) {
			all[key] = values[0]
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// transportHeader reports whether a header belongs to HTTP itself and says nothing of the caller's purpose.
func transportHeader(lower string) bool {
	switch lower {
	case "accept", "accept-encoding", "accept-language", "cache-control", "connection", "content-encoding", "content-length", "content-type", "date",
		"expect", "host", "keep-alive", "origin", "pragma", "referer", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "via",
		"forwarded", "x-request-id", "traceparent", "tracestate", "idempotency-key", "x-lancerest-principal", "x-lancerest-operation":
		return true
	}
	return strings.HasPrefix(lower, "sec-") || strings.HasPrefix(lower, "x-forwarded-") || strings.HasPrefix(lower, "if-")
}

// authors keeps who wrote something apart from who is authorized.
var authors = strings.NewReplacer("authoriz", "authoriz", "authoris", "authoriz", "author", "writer")

// secretName reports whether a header, or a key of the context, may hold a secret.
func secretName(name string) bool {
	lower := authors.Replace(strings.ToLower(name))
	for _, mark := range []string{"auth", "cookie", "token", "secret", "password", "passwd", "credential", "api-key", "apikey", "api_key", "access-key", "access_key", "signature", "private", "jwt"} {
		if strings.Contains(lower, mark) {
			return true
		}
	}
	return false
}
