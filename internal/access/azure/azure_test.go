package azure_test

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

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/access/accesstest"
	"github.com/lancerest/lancerest/internal/access/azure"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	store "github.com/lancerest/lancerest/internal/objstore/azure"
	"github.com/lancerest/lancerest/internal/objstore/azure/azuretest"
)

// server is the emulator that all tests of the package share.
var server *azuretest.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if server, err = azuretest.OpenTLS(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Close()
	return m.Run()
}

// life is how long keys live that nobody waits for the end of.
const life = time.Hour

// login is the server's identity.
type login struct{}

func (login) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: azuretest.Token(life), ExpiresOn: time.Now().Add(life)}, nil
}

func location(t *testing.T, uri string) lance.Location {
	t.Helper()
	loc, err := lance.ParseLocation(uri)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// place is a container, as providers and stores reach it.
type place struct {
	container string
	endpoint  string
	client    *http.Client
}

func (p place) provider(t *testing.T, change func(*azure.Options)) *azure.Provider {
	t.Helper()
	o := azure.Options{
		Container: p.container, Account: azuretest.Account, Endpoint: p.endpoint, Credential: login{}, HTTPClient: p.client,
		Vend: azure.Vending{Duration: life},
	}
	change(&o)
	provider, err := azure.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

func (p place) open(t *testing.T, o store.Options) objstore.Store {
	t.Helper()
	o.Container, o.Account, o.Endpoint, o.HTTPClient, o.Pause = p.container, azuretest.Account, p.endpoint, p.client, time.Millisecond
	s, err := store.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestVendor has the suite with both ways to sign for a directory.
func TestVendor(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*azure.Options){
		"with the server's identity": func(*azure.Options) {},
		"with the account's key":     func(o *azure.Options) { o.Credential, o.AccountKey = nil, azuretest.Key },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accesstest.Run(t, func(t *testing.T) accesstest.World {
				w := world(t, life, change)
				w.Brief = func(t *testing.T) accesstest.World { return world(t, 3*time.Second, change) }
				return w
			})
		})
	}
}

func world(t *testing.T, life time.Duration, change func(*azure.Options)) accesstest.World {
	t.Helper()
	j := newJudge(t)
	p := place{container: server.Container(t), endpoint: j.endpoint, client: j.client}
	return accesstest.World{
		Vendor: p.provider(t, func(o *azure.Options) { o.Vend.Duration = life; change(o) }),
		Life:   life, Root: location(t, "az://"+p.container+"/root/deep"), Owner: p.open(t, store.Options{AccountKey: azuretest.Key}),
		Open: func(t *testing.T, keys access.Keys) objstore.Store {
			return p.open(t, store.Options{SAS: keys.Values["azure_storage_sas_token"]})
		},
		Backslash: "Azure takes a backslash for a slash",
	}
}

// A flat account, which is what the emulator itself has, knows no directories.
func TestFlatAccount(t *testing.T) {
	t.Parallel()
	p := place{container: server.Container(t), endpoint: server.Endpoint, client: server.HTTPClient}
	dir := location(t, "az://"+p.container+"/t.lance")
	for name, change := range map[string]func(*azure.Options){
		"with the server's identity": func(*azure.Options) {},
		"with the account's key":     func(o *azure.Options) { o.Credential, o.AccountKey = nil, azuretest.Key },
	} {
		narrow := p.provider(t, change)
		for _, err := range []error{narrow.Check(t.Context()), second(narrow.Vend(t.Context(), dir, access.ReadWrite))} {
			if !errors.Is(err, access.ErrUnfit) || !strings.Contains(err.Error(), "namespace is flat") || !strings.Contains(err.Error(), "vend.container_wide") {
				t.Errorf("%s a flat account gives %v, want ErrUnfit that says why and what to do", name, err)
			}
		}
		wide := p.provider(t, func(o *azure.Options) { o.Vend.ContainerWide = true; change(o) })
		if err := wide.Check(t.Context()); err != nil {
			t.Errorf("%s keys for the whole container are wanted: %v", name, err)
		}
		containerWide(t, p, wide, dir)
	}
}

func second(_ access.Keys, err error) error { return err }

// containerWide tries keys that reach a whole container on the emulator itself.
func containerWide(t *testing.T, p place, wide *azure.Provider, dir lance.Location) {
	t.Helper()
	keys, err := wide.Vend(t.Context(), dir, access.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(keys.Expires); left < life-time.Minute || left > life || keys.Life > life {
		t.Errorf("keys for %s end in %s and live %s", life, left, keys.Life)
	}
	s := p.open(t, store.Options{SAS: keys.Values["azure_storage_sas_token"]})
	info, err := s.PutIfAbsent(t.Context(), "t.lance/data/1", []byte("x"))
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	if _, err := s.DeleteTree(t.Context(), "t.lance/"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if info, err = s.PutIfAbsent(t.Context(), "t.lance/data/1", []byte("x")); err != nil {
		t.Fatalf("put again: %v", err)
	}
	keys, err = wide.Vend(t.Context(), dir, access.Read)
	if err != nil {
		t.Fatal(err)
	}
	reader := p.open(t, store.Options{SAS: keys.Values["azure_storage_sas_token"]})
	if got, err := reader.Head(t.Context(), "t.lance/data/1"); err != nil || got != info {
		t.Errorf("look with keys to read: %+v, %v", got, err)
	}
	if err := reader.Delete(t.Context(), "t.lance/data/1"); !errors.Is(err, objstore.ErrDenied) {
		t.Errorf("remove with keys to read: %v, want ErrDenied", err)
	}
	if err := s.Delete(t.Context(), "t.lance/data/1"); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// The judge is there because the emulator knows no signatures for directories. Once this fails it can go.
func TestBareEmulator(t *testing.T) {
	t.Parallel()
	p := place{container: server.Container(t), endpoint: server.Endpoint, client: server.HTTPClient}
	keys, err := p.provider(t, func(o *azure.Options) { o.Vend.Hierarchical = true }).Vend(t.Context(), location(t, "az://c/t"), access.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	s := p.open(t, store.Options{SAS: keys.Values["azure_storage_sas_token"]})
	if _, err := s.PutIfAbsent(t.Context(), "t/a", nil); err == nil {
		t.Error("the emulator takes signatures for directories now")
	}
}

func TestUnfit(t *testing.T) {
	t.Parallel()
	p := place{container: "c", endpoint: server.Endpoint, client: server.HTTPClient}
	provider := p.provider(t, func(o *azure.Options) { o.Vend.Hierarchical = true })
	for _, dir := range []string{"az://c", `az://c/a\b`} {
		if _, err := provider.Vend(t.Context(), location(t, dir), access.Read); !errors.Is(err, access.ErrUnfit) {
			t.Errorf("Vend(%q) = %v, want ErrUnfit", dir, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]azure.Options{
		"at most":                   {Credential: login{}, Vend: azure.Vending{Duration: 8 * 24 * time.Hour}},
		"no other one can be made":  {SAS: "sig=s3cr3t", Vend: azure.Vending{Duration: life}},
		"the account's key is none": {AccountKey: "%s3cr3t%", Vend: azure.Vending{Duration: life}},
	} {
		o.Container, o.Account, o.Endpoint = "c", "acme", "https://acme.blob.core.windows.net"
		if _, err := azure.New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("New = %v, want an error with %q", err, want)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"away":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(501) }, access.ErrUnavailable},
		"refusing": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, access.ErrRefused},
		"finding a fault": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			fmt.Fprint(w, "<Error><Code>InvalidXmlDocument</Code></Error>")
		}, access.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := httptest.NewTLSServer(c.answer)
			defer front.Close()
			p := place{container: "c", endpoint: front.URL, client: front.Client()}
			provider := p.provider(t, func(o *azure.Options) { o.Vend.Hierarchical = true })
			if _, err := provider.Vend(t.Context(), location(t, "az://c/t"), access.Read); !errors.Is(err, c.want) {
				t.Errorf("Vend where the service makes no key = %v, want %v", err, c.want)
			}
			asking := p.provider(t, func(*azure.Options) {})
			if err := asking.Check(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("Check = %v, want %v", err, c.want)
			}
		})
	}
}

func TestSettingsAndOwnKeys(t *testing.T) {
	t.Parallel()
	const end = "2040-01-02T03:04:05Z"
	for name, c := range map[string]struct {
		options  azure.Options
		settings map[string]string
		own      map[string]string
		ends     bool
	}{
		"the account's key": {
			azure.Options{Endpoint: "https://acme.blob.core.windows.net", AccountKey: "k"},
			map[string]string{"azure_storage_account_name": "acme"}, map[string]string{"azure_storage_account_key": "k"}, false,
		},
		"a signature": {
			azure.Options{Endpoint: "https://acme.blob.core.windows.net", SAS: "sv=1&se=" + end + "&sig=x"},
			map[string]string{"azure_storage_account_name": "acme"}, map[string]string{"azure_storage_sas_token": "sv=1&se=" + end + "&sig=x"}, true,
		},
		"an identity, elsewhere": {
			azure.Options{Endpoint: "http://127.0.0.1:10000/acme", Credential: fixed{}},
			map[string]string{"azure_storage_account_name": "acme", "azure_storage_endpoint": "http://127.0.0.1:10000/acme", "allow_http": "true"},
			map[string]string{"azure_storage_token": "a token"}, true,
		},
	} {
		c.options.Container, c.options.Account = "c", "acme"
		p, err := azure.New(c.options)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.settings, p.Settings()); diff != "" {
			t.Errorf("settings with %s (-want +got):\n%s", name, diff)
		}
		keys, err := p.Own(t.Context())
		if err != nil {
			t.Errorf("own keys with %s: %v", name, err)
		}
		if diff := cmp.Diff(c.own, keys.Values); diff != "" || keys.Expires.IsZero() == c.ends {
			t.Errorf("own keys with %s end at %s (-want +got):\n%s", name, keys.Expires, diff)
		}
	}
}

// fixed is an identity whose token is known.
type fixed struct{}

func (fixed) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "a token", ExpiresOn: time.Now().Add(life)}, nil
}
