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
// the caller's own (specification, Context). The body wins. Secrets are left out wherever they stand.
func contextOf(h http.Header, body map[string]string) map[string]string {
	all := map[string]string{}
	folded := map[string]bool{}
	for key, value := range body {
		if name, mapped := cutFold(key, mappedHeader); mapped && secretHeader(name) {
			continue
		}
		all[key] = value
		folded[strings.ToLower(key)] = true
	}
	for name, values := range h {
		lower := strings.ToLower(name)
		key, plain := strings.CutPrefix(lower, contextHeader)
		if !plain {
			if transportHeader(lower) || secretHeader(lower) {
				continue
			}
			key = mappedHeader + lower
		}
		if key != "" && !folded[key] {
			all[key] = values[0]
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// cutFold is strings.CutPrefix without regard to case.
func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// transportHeader reports whether a header belongs to HTTP itself and says nothing of the caller's purpose.
func transportHeader(lower string) bool {
	switch lower {
	case "accept", "accept-encoding", "accept-language", "cache-control", "connection", "content-encoding", "content-length", "content-type", "date",
		"expect", "host", "keep-alive", "origin", "pragma", "referer", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "via",
		"forwarded", "x-request-id", "traceparent", "tracestate", "idempotency-key":
		return true
	}
	return strings.HasPrefix(lower, "sec-") || strings.HasPrefix(lower, "x-forwarded-") || strings.HasPrefix(lower, "if-")
}

// secretHeader reports whether a header may hold a secret.
func secretHeader(name string) bool {
	lower := strings.ToLower(name)
	for _, mark := range []string{"auth", "cookie", "token", "secret", "password", "passwd", "credential", "api-key", "apikey", "api_key", "access-key", "signature", "private"} {
		if strings.Contains(lower, mark) {
			return true
		}
	}
	return false
}
