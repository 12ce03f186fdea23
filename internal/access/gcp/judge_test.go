package gcp_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cloud.google.com/go/auth"
)

// ownToken is the operator's own.
const ownToken = "operators-own-token"

// judge stands before the emulator of Google Cloud Storage, which asks for no token, and does with tokens what Google documents: it is the
// token service that narrows them, and it judges every request by the boundary of its token. Conditions are evaluated by the library
// for their language, so that what a name does in one is seen and not assumed.
type judge struct {
	url  string
	life time.Duration // of tokens
	next http.Handler

	mu     sync.Mutex
	tokens map[string]narrowed
	asked  []url.Values // of the token service
}

type narrowed struct {
	rules   []accessRule
	expires time.Time
}

// accessRule is a rule as Google documents it.
type accessRule struct {
	AvailableResource     string   `json:"availableResource"`
	AvailablePermissions  []string `json:"availablePermissions"`
	AvailabilityCondition struct {
		Expression string `json:"expression"`
	} `json:"availabilityCondition"`
}

// newJudge starts one before the emulator.
func newJudge(t *testing.T, life time.Duration) *judge {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	j := &judge{life: life, tokens: map[string]narrowed{}, next: &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
	front := httptest.NewServer(j)
	t.Cleanup(front.Close)
	j.url = front.URL
	return j
}

// RoundTrip leads requests that are meant for Google's token service to this one.
func (j *judge) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.String() != "https://sts.googleapis.com/v1/token" {
		return nil, fmt.Errorf("the token service is not at %s", r.URL)
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(j.url, "http://")
	r.Host = ""
	return http.DefaultTransport.RoundTrip(r)
}

// Token is the operator's own token; it implements auth.TokenProvider.
func (j *judge) Token(context.Context) (*auth.Token, error) {
	return &auth.Token{Value: ownToken, Expiry: time.Now().Add(j.life)}, nil
}

func (j *judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/token" {
		j.narrow(w, r)
		return
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	j.mu.Lock()
	held, known := j.tokens[token]
	j.mu.Unlock()
	switch {
	case token == ownToken:
	case !known || time.Now().After(held.expires):
		refuse(w, http.StatusUnauthorized, "authError", "Invalid Credentials")
		return
	default:
		if why := held.forbids(r); why != "" {
			refuse(w, http.StatusForbidden, "forbidden", why)
			return
		}
	}
	j.next.ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error": {"code": %d, "message": %q, "errors": [{"message": %[2]q, "domain": "global", "reason": %q}]}}`, status, message, reason)
}

// narrow is the token service.
func (j *judge) narrow(w http.ResponseWriter, r *http.Request) {
	var options struct {
		AccessBoundary struct {
			AccessBoundaryRules []accessRule `json:"accessBoundaryRules"`
		} `json:"accessBoundary"`
	}
	if err := r.ParseForm(); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	decoder := json.NewDecoder(strings.NewReader(r.PostForm.Get("options")))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&options)
	rules := options.AccessBoundary.AccessBoundaryRules
	const accessToken = "urn:ietf:params:oauth:token-type:access_token"
	if err != nil || r.Method != http.MethodPost || r.PostForm.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" ||
		r.PostForm.Get("subject_token_type") != accessToken || r.PostForm.Get("requested_token_type") != accessToken ||
		r.PostForm.Get("subject_token") != ownToken || len(rules) == 0 || len(rules) > 10 || slices.ContainsFunc(rules, accessRule.malformed) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error": "invalid_request", "error_description": "Invalid value"}`)
		return
	}
	token := rand.Text()
	j.mu.Lock()
	j.asked = append(j.asked, r.PostForm)
	j.tokens[token] = narrowed{rules: rules, expires: time.Now().Add(j.life)}
	j.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token": %q, "issued_token_type": %q, "token_type": "Bearer", "expires_in": %d}`, token, accessToken, int(j.life/time.Second))
}

// malformed reports what the token service refuses.
func (r accessRule) malformed() bool {
	_, err := compile(r.AvailabilityCondition.Expression)
	return err != nil || len([]rune(r.AvailabilityCondition.Expression)) > 2048 || len(r.AvailablePermissions) == 0 ||
		!strings.HasPrefix(r.AvailableResource, "//storage.googleapis.com/projects/_/buckets/")
}

// roles are the permissions of the roles that a boundary may name, as far as objects are concerned.
func roles(role string) []string {
	switch role {
	case "inRole:roles/storage.objectViewer":
		return []string{"storage.objects.get", "storage.objects.list"}
	case "inRole:roles/storage.objectUser":
		return []string{"storage.objects.get", "storage.objects.list", "storage.objects.create", "storage.objects.delete", "storage.objects.update"}
	}
	return nil
}

// forbids says why a token does not carry a request; "" where it does.
func (n narrowed) forbids(r *http.Request) string {
	bucket, object, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), "/upload"), "/storage/v1/b/"), "/o")
	object, err := url.PathUnescape(strings.TrimPrefix(object, "/"))
	if err != nil {
		return err.Error()
	}
	name, listed, permission := "projects/_/buckets/"+bucket+"/objects/"+object, "", "storage.objects.get"
	switch {
	case strings.HasPrefix(r.URL.Path, "/upload/"):
		name, permission = "projects/_/buckets/"+bucket+"/objects/"+r.URL.Query().Get("name"), "storage.objects.create"
	case r.Method == http.MethodDelete:
		permission = "storage.objects.delete"
	case r.Method == http.MethodGet && object == "":
		name, listed, permission = "projects/_/buckets/"+bucket, r.URL.Query().Get("prefix"), "storage.objects.list"
	}
	for _, rule := range n.rules {
		if rule.AvailableResource != "//storage.googleapis.com/projects/_/buckets/"+bucket || !slices.Contains(roles(rule.AvailablePermissions[0]), permission) {
			continue
		}
		program, err := compile(rule.AvailabilityCondition.Expression)
		if err != nil {
			return err.Error()
		}
		result, _, err := program.Eval(map[string]any{
			"resource": map[string]string{"name": name, "service": "storage.googleapis.com"},
			"api":      map[string]string{"storage.googleapis.com/objectListPrefix": listed},
		})
		if err == nil && result.Value() == true {
			return ""
		}
	}
	return fmt.Sprintf("the token does not have %s access to %s", permission, name)
}

// compile reads a condition in what the service knows.
func compile(expression string) (cel.Program, error) {
	env, err := cel.NewEnv(
		cel.Variable("resource", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("api", cel.MapType(cel.StringType, cel.StringType)),
		cel.Function("getAttribute", cel.MemberOverload("attribute", []*cel.Type{cel.MapType(cel.StringType, cel.StringType), cel.StringType, cel.StringType}, cel.StringType,
			cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				value, found := args[0].(traits.Mapper).Find(args[1])
				if !found || value.Equal(types.String("")) == types.True {
					return args[2]
				}
				return value
			}))),
	)
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	return env.Program(ast)
}
