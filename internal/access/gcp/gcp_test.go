package gcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/auth"
	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/access/accesstest"
	"github.com/lancerest/lancerest/internal/access/gcp"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/gcs"
	"github.com/lancerest/lancerest/internal/objstore/gcs/gcstest"
)

// server is the emulator that all tests of the package share.
var server *gcstest.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if server, err = gcstest.Open(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Close()
	return m.Run()
}

// life is how long Google's tokens live.
const life = time.Hour

func TestVendor(t *testing.T) {
	t.Parallel()
	accesstest.Run(t, func(t *testing.T) accesstest.World {
		w := world(t, newJudge(t, life))
		w.Brief = func(t *testing.T) accesstest.World { return world(t, newJudge(t, 2*time.Second)) }
		return w
	})
}

func world(t *testing.T, j *judge) accesstest.World {
	t.Helper()
	bucket := server.Bucket(t)
	store := func(t *testing.T, token string) objstore.Store {
		s, err := gcs.New(t.Context(), gcs.Options{Bucket: bucket, Endpoint: j.url, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return accesstest.World{
		Vendor: provider(bucket, j), Life: j.life, Root: location(t, "gs://"+bucket+"/root"), Owner: store(t, ownToken),
		Open: func(t *testing.T, keys access.Keys) objstore.Store {
			return store(t, keys.Values["google_storage_token"])
		},
	}
}

// provider narrows the operator's own token.
func provider(bucket string, j *judge) *gcp.Provider {
	return gcp.New(gcp.Options{Bucket: bucket, Credentials: auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: j}), Transport: j})
}

func location(t *testing.T, uri string) lance.Location {
	t.Helper()
	loc, err := lance.ParseLocation(uri)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// TestBoundary has the text that is sent, as Google documents it.
func TestBoundary(t *testing.T) {
	t.Parallel()
	j := newJudge(t, life)
	for _, c := range []struct {
		dir   string
		grant access.Grant
		want  string
	}{
		{"gs://b/p/t.lance", access.ReadWrite, `{"accessBoundary":{"accessBoundaryRules":[` +
			`{"availableResource":"//storage.googleapis.com/projects/_/buckets/b","availablePermissions":["inRole:roles/storage.objectUser"],` +
			`"availabilityCondition":{"expression":"resource.name.startsWith('projects/_/buckets/b/objects/p/t.lance/')"}},` +
			`{"availableResource":"//storage.googleapis.com/projects/_/buckets/b","availablePermissions":["inRole:roles/storage.objectViewer"],` +
			`"availabilityCondition":{"expression":"api.getAttribute('storage.googleapis.com/objectListPrefix', '') == 'p/t.lance' || ` +
			`api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('p/t.lance/')"}}]}}`},
		{`gs://b/it's a \`, access.Read, `{"accessBoundary":{"accessBoundaryRules":[` +
			`{"availableResource":"//storage.googleapis.com/projects/_/buckets/b","availablePermissions":["inRole:roles/storage.objectViewer"],` +
			`"availabilityCondition":{"expression":"resource.name.startsWith('projects/_/buckets/b/objects/it\\'s a \\\\/')"}},` +
			`{"availableResource":"//storage.googleapis.com/projects/_/buckets/b","availablePermissions":["inRole:roles/storage.objectViewer"],` +
			`"availabilityCondition":{"expression":"api.getAttribute('storage.googleapis.com/objectListPrefix', '') == 'it\\'s a \\\\' || ` +
			`api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('it\\'s a \\\\/')"}}]}}`},
	} {
		if _, err := provider("b", j).Vend(t.Context(), location(t, c.dir), c.grant); err != nil {
			t.Fatal(err)
		}
		got := strings.NewReplacer(`\u0027`, "'", `\u0026`, "&").Replace(j.asked[len(j.asked)-1].Get("options"))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("boundary of %s (-want +got):\n%s", c.dir, diff)
		}
	}
}

func TestUnfit(t *testing.T) {
	t.Parallel()
	j := newJudge(t, life)
	for _, dir := range []string{"gs://b", "gs://b/" + strings.Repeat("'", 500)} {
		if _, err := provider("b", j).Vend(t.Context(), location(t, dir), access.Read); !errors.Is(err, access.ErrUnfit) {
			t.Errorf("Vend(%.20s…) = %v, want ErrUnfit", dir, err)
		}
	}
	// The longest location without quotes fits.
	if _, err := provider("b", j).Vend(t.Context(), location(t, "gs://b/"+strings.Repeat("d", 767)), access.Read); err != nil {
		t.Errorf("Vend of a location of 767 characters = %v, want keys", err)
	}
}

// serviceAt answers every request to the token service in one way.
type serviceAt string

func (s serviceAt) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(string(s), "http://")
	return http.DefaultTransport.RoundTrip(r)
}

func TestFailuresOfTheTokenService(t *testing.T) {
	t.Parallel()
	own := auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: &judge{life: life}})
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"away":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, access.ErrUnavailable},
		"throttling":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, access.ErrUnavailable},
		"refusing":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, access.ErrRefused},
		"finding a fault": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }, access.ErrRefused},
		"hanging up": {func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = conn.Close() // the client sees the end in any case
			}
		}, access.ErrUnavailable},
		"without a token": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"expires_in": 3600}`) }, access.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := httptest.NewServer(c.answer)
			defer service.Close()
			p := gcp.New(gcp.Options{Bucket: "b", Credentials: own, Transport: serviceAt(service.URL)})
			_, err := p.Vend(t.Context(), location(t, "gs://b/t"), access.Read)
			if !errors.Is(err, c.want) || strings.Contains(err.Error(), ownToken) {
				t.Errorf("Vend = %v, want %v, without the operator's token", err, c.want)
			}
		})
	}
}

// failing is a source of own tokens that has none.
type failing struct{ err error }

func (f failing) Token(context.Context) (*auth.Token, error) { return nil, f.err }

func TestFailuresOfTheOwnToken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want error
	}{
		{&auth.Error{Response: &http.Response{StatusCode: 503}}, access.ErrUnavailable},
		{&auth.Error{Response: &http.Response{StatusCode: 400}}, access.ErrRefused},
	} {
		p := gcp.New(gcp.Options{Bucket: "b", Credentials: auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: failing{c.err}})})
		if _, err := p.Vend(t.Context(), location(t, "gs://b/t"), access.Read); !errors.Is(err, c.want) {
			t.Errorf("Vend = %v, want %v", err, c.want)
		}
		if _, err := p.Own(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("Own = %v, want %v", err, c.want)
		}
	}
	anonymous := gcp.New(gcp.Options{Bucket: "b"})
	if _, err := anonymous.Vend(t.Context(), location(t, "gs://b/t"), access.Read); !errors.Is(err, access.ErrRefused) {
		t.Errorf("Vend without credentials = %v, want ErrRefused", err)
	}
	if _, err := anonymous.Own(t.Context()); !errors.Is(err, access.ErrRefused) {
		t.Errorf("Own without credentials = %v, want ErrRefused", err)
	}
}

func TestSettingsAndOwnKeys(t *testing.T) {
	t.Parallel()
	const account = `{"type": "service_account"}`
	end := time.Now().Add(time.Hour)
	token := auth.TokenProvider(&judge{life: life})
	for name, c := range map[string]struct {
		options  gcp.Options
		settings map[string]string
		own      map[string]string
		ends     bool
	}{
		"Google's, with a service account": {
			gcp.Options{Credentials: auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: token, JSON: []byte(account)})},
			map[string]string{}, map[string]string{"google_service_account_key": account}, false,
		},
		"Google's, on a machine of theirs": {
			gcp.Options{Credentials: auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: token})},
			map[string]string{}, map[string]string{"google_storage_token": ownToken}, true,
		},
		"another endpoint": {
			gcp.Options{Endpoint: "http://127.0.0.1:4443", Credentials: auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: token})},
			map[string]string{"google_base_url": "http://127.0.0.1:4443", "allow_http": "true"}, map[string]string{"google_storage_token": ownToken}, true,
		},
		"an emulator": {
			gcp.Options{Endpoint: "http://127.0.0.1:4443"},
			map[string]string{
				"google_base_url": "http://127.0.0.1:4443", "allow_http": "true",
				"google_service_account_key": `{"disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}`,
			}, nil, false,
		},
	} {
		p := gcp.New(c.options)
		if diff := cmp.Diff(c.settings, p.Settings()); diff != "" {
			t.Errorf("settings of %s (-want +got):\n%s", name, diff)
		}
		keys, err := p.Own(t.Context())
		if c.own == nil {
			continue
		}
		if err != nil {
			t.Errorf("own keys of %s: %v", name, err)
		}
		if diff := cmp.Diff(c.own, keys.Values); diff != "" {
			t.Errorf("own keys of %s (-want +got):\n%s", name, diff)
		}
		if ends := !keys.Expires.IsZero(); ends != c.ends || ends && keys.Expires.Before(end.Add(-time.Minute)) {
			t.Errorf("own keys of %s end at %s", name, keys.Expires)
		}
	}
}
