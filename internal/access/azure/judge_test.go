package azure_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/lancerest/lancerest/internal/objstore/azure/azuretest"
)

// judge stands before the emulator, whose account is flat and which knows no signatures for directories, and adds what Microsoft documents for
// accounts with a hierarchical namespace: it says that the account is one, and judges signatures for directories. A signature is computed
// again from the documented text, with the very key that the emulator made for it. Requests that pass go on with a signature for the
// whole container.
type judge struct {
	endpoint string
	client   *http.Client
	proxy    *httputil.ReverseProxy

	mu   sync.Mutex
	keys map[string]string // value of a user delegation key by its object and its end
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	j := &judge{keys: map[string]string{}}
	j.proxy = &httputil.ReverseProxy{
		Transport: server.HTTPClient.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = target.Host
		},
		ModifyResponse: j.answered,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	front := httptest.NewTLSServer(j)
	t.Cleanup(front.Close)
	address := front.Listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	j.endpoint = "https://" + strings.TrimSuffix(target.Host, target.Port()) + port
	trusting := front.Client().Transport.(*http.Transport).Clone()
	trusting.TLSClientConfig.ServerName = "example.com" // which the certificate of httptest is for
	trusting.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	j.client = &http.Client{Transport: trusting}
	return j
}

func (j *judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("sr") == "d" {
		if why := j.forbids(r, query); why != "" {
			w.Header().Set("x-ms-error-code", why)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if err := swap(r, query); err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
	}
	j.proxy.ServeHTTP(w, r)
}

// answered notes keys that are made, and says what the account is.
func (j *judge) answered(r *http.Response) error {
	query := r.Request.URL.Query()
	switch {
	case query.Get("restype") == "account":
		r.Header.Set("x-ms-is-hns-enabled", "true")
	case query.Get("comp") == "userdelegationkey" && r.StatusCode == http.StatusOK:
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		var key struct{ SignedOid, SignedExpiry, Value string }
		if err := xml.Unmarshal(text, &key); err != nil {
			return err
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.keys[key.SignedOid+key.SignedExpiry] = key.Value
	}
	return nil
}

// forbids says with which code the service refuses a request with a signature for a directory; "" where it does not.
func (j *judge) forbids(r *http.Request, query url.Values) string {
	path := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 2)
	name, permission := "", "r"
	if len(path) == 2 {
		name = path[1]
	}
	switch {
	case query.Get("comp") == "list":
		name, permission = query.Get("prefix"), "l"
	case query.Get("comp") == "batch":
		return "AuthorizationFailure"
	case r.Method == http.MethodPut:
		permission = "w"
	case r.Method == http.MethodDelete:
		permission = "d"
	}
	// Where the directory ends in the name is signed beside it.
	depth, err := strconv.Atoi(query.Get("sdd"))
	segments := strings.Split(name, "/")
	if err != nil || depth < 1 || len(segments) < depth {
		return "AuthenticationFailed"
	}
	if !j.signed(query, path[0]+"/"+strings.Join(segments[:depth], "/")) {
		return "AuthenticationFailed"
	}
	end, err := time.Parse(time.RFC3339, query.Get("se"))
	switch {
	case err != nil || !time.Now().Before(end):
		return "AuthenticationFailed"
	case len(segments) == depth && permission != "l":
		return "AuthorizationFailure" // it is the directory itself
	case !strings.Contains(query.Get("sp"), permission):
		return "AuthorizationPermissionMismatch"
	}
	return ""
}

// signed reports whether a signature is one for a directory.
func (j *judge) signed(query url.Values, directory string) bool {
	var fields []string
	add := func(names ...string) {
		for _, name := range names {
			fields = append(fields, query.Get(name))
		}
	}
	add("sp", "st", "se")
	fields = append(fields, "/blob/"+azuretest.Account+"/"+directory)
	key := azuretest.Key
	if query.Get("skoid") == "" { // the account's key
		add("si", "sip", "spr", "sv", "sr", "", "ses", "rscc", "rscd", "rsce", "rscl", "rsct")
	} else {
		add("skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "skdutid", "sduoid", "sip", "spr", "sv", "sr", "", "ses")
		fields = append(fields, "", "") // headers and parameters that must be there: none
		add("rscc", "rscd", "rsce", "rscl", "rsct")
		j.mu.Lock()
		key = j.keys[query.Get("skoid")+query.Get("ske")]
		j.mu.Unlock()
	}
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(secret) == 0 {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.Join(fields, "\n")))
	return query.Get("sig") == base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// swap puts a signature for the whole container into the place of one for a directory.
func swap(r *http.Request, query url.Values) error {
	for _, name := range []string{"sv", "spr", "st", "se", "sp", "sr", "sdd", "sig", "skoid", "sktid", "skt", "ske", "sks", "skv"} {
		query.Del(name)
	}
	key, err := container.NewSharedKeyCredential(azuretest.Account, azuretest.Key)
	if err != nil {
		return err
	}
	may := sas.ContainerPermissions{Read: true, Add: true, Create: true, Write: true, Delete: true, List: true}
	all, err := sas.BlobSignatureValues{
		ContainerName: strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 2)[0], ExpiryTime: time.Now().UTC().Add(time.Hour), Permissions: may.String(),
	}.SignWithSharedKey(key)
	if err != nil {
		return err
	}
	r.URL.RawQuery = query.Encode() + "&" + all.Encode()
	return nil
}
