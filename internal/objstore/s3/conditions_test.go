package s3_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/alone"
	"github.com/lancerest/lancerest/internal/objstore/objtest"
)

// heedless passes every request on without its conditions, as servers do that know none, and signs it anew.
func heedless(methods ...string) step {
	return func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if slices.Contains(methods, r.Method) {
			r.Header.Del("If-Match")
			r.Header.Del("If-None-Match")
			keys := aws.Credentials{AccessKeyID: server.AccessKey, SecretAccessKey: server.SecretKey}
			r.URL.Host = r.Host
			if err := v4.NewSigner().SignHTTP(r.Context(), keys, r, r.Header.Get("X-Amz-Content-Sha256"), "s3", server.Region, time.Now()); err != nil {
				panic(err)
			}
		}
		inner.ServeHTTP(w, r)
	}
}

// TestTry: a server that judges conditions is found to, and one that passes over some is found out. Before such a one the whole suite passes
// once a single process judges for it.
func TestTry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan step
		want objstore.Conditions
	}{
		"all":             {pass, objstore.Conditions{Absent: true, Replace: true, Delete: true}},
		"but no removals": {heedless(http.MethodDelete), objstore.Conditions{Absent: true, Replace: true}},
		"none at all":     {heedless(http.MethodDelete, http.MethodPut), objstore.Conditions{}},
		"says so":         {saysNotImplemented, objstore.Conditions{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := behind(t)
			f.always(c.plan)
			got, err := objstore.Try(t.Context(), s, server.Prefix())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the conditions found differ (-want +got):\n%s", diff)
			}
			if got.All() {
				return
			}
			objtest.RunWith(t, func(t *testing.T) objstore.Store {
				judging, err := alone.New(s, got)
				if err != nil {
					t.Fatal(err)
				}
				return &under{inner: judging, prefix: server.Prefix()}
			}, seaweed())
		})
	}
}

// saysNotImplemented refuses what has a condition.
func saysNotImplemented(w http.ResponseWriter, r *http.Request, inner http.Handler) {
	if r.Header.Get("If-Match")+r.Header.Get("If-None-Match") != "" {
		says(501, "NotImplemented")(w, r, inner)
		return
	}
	inner.ServeHTTP(w, r)
}
