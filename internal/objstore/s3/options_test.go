package s3_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/objstore/s3"
	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

// TestAddresses: the bucket in the path of the URL, or in its host name.
func TestAddresses(t *testing.T) {
	t.Parallel()
	at, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pathStyle bool
		endpoint  string
	}{
		"in the path":      {true, server.Endpoint},
		"in the host name": {false, "http://" + s3test.Domain + ":" + at.Port()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, func(o *s3.Options) {
				o.PathStyle, o.Endpoint = &c.pathStyle, c.endpoint
				s3.DialTo(o, at.Host)
			})
			key := server.Prefix() + "a b/ä+%"
			if _, err := s.PutIfAbsent(t.Context(), key, []byte("x")); err != nil {
				t.Fatal(err)
			}
			// The other style sees the same object.
			if _, err := open(t).Head(t.Context(), key); err != nil {
				t.Error(err)
			}
			if removed, err := s.DeleteTree(t.Context(), key[:strings.LastIndexByte(key, '/')+1]); err != nil || removed != 1 {
				t.Errorf("DeleteTree = %d, %v, want 1", removed, err)
			}
			if got := s.Settings(); got.PathStyle != c.pathStyle || got.Endpoint != c.endpoint || got.Region != server.Region {
				t.Errorf("Settings = %+v, want those of the options", got)
			}
		})
	}
}

// TestEnvironment: what the options leave out is found where AWS's own tools find it.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST"} {
		t.Setenv(name, "")
	}
	files := t.TempDir()
	write := func(name, text string) string {
		if err := os.WriteFile(files+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return files + "/" + name
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", write("config", "[profile lake]\nregion = eu-north-1\nendpoint_url = http://127.0.0.1:1\n"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", write("credentials", "[lake]\naws_access_key_id = fromfile\naws_secret_access_key = s\n"))
	t.Setenv("AWS_ACCESS_KEY_ID", "fromenvironment")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	type found struct {
		Endpoint, Region, Key string
		PathStyle             bool
	}
	for _, c := range []struct {
		name string
		set  map[string]string
		give s3.Options
		want found
	}{
		{"Amazon", map[string]string{"AWS_REGION": "eu-west-1"}, s3.Options{}, found{Region: "eu-west-1", Key: "fromenvironment"}},
		{"Amazon, a bucket with dots", map[string]string{"AWS_REGION": "eu-west-1"}, s3.Options{Bucket: "a.b"}, found{Region: "eu-west-1", Key: "fromenvironment", PathStyle: true}},
		{"an endpoint", map[string]string{"AWS_ENDPOINT_URL": "http://s3:1"}, s3.Options{}, found{"http://s3:1", "us-east-1", "fromenvironment", true}},
		{"an endpoint for S3 alone", map[string]string{"AWS_ENDPOINT_URL": "http://all:1", "AWS_ENDPOINT_URL_S3": "http://s3:1"}, s3.Options{}, found{"http://s3:1", "us-east-1", "fromenvironment", true}},
		{"the name that Lance reads", map[string]string{"AWS_ENDPOINT": "http://s3:1"}, s3.Options{}, found{"http://s3:1", "us-east-1", "fromenvironment", true}},
		{"an endpoint with buckets in host names", map[string]string{"AWS_ENDPOINT_URL": "http://s3:1", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}, s3.Options{}, found{"http://s3:1", "us-east-1", "fromenvironment", false}},
		{"a profile", nil, s3.Options{Profile: "lake"}, found{"http://127.0.0.1:1", "eu-north-1", "fromfile", true}},
		{"options win", map[string]string{"AWS_ENDPOINT_URL": "http://s3:1", "AWS_REGION": "eu-west-1"}, s3.Options{Endpoint: "http://other:1", Region: "r", AccessKeyID: "given", SecretAccessKey: "s"}, found{"http://other:1", "r", "given", true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.set {
				t.Setenv(name, value)
			}
			if c.give.Bucket == "" {
				c.give.Bucket = "b"
			}
			s, err := s3.New(t.Context(), c.give)
			if err != nil {
				t.Fatal(err)
			}
			got := s.Settings()
			keys, err := got.Credentials.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, found{got.Endpoint, got.Region, keys.AccessKeyID, got.PathStyle}); diff != "" {
				t.Errorf("found differs (-want +got):\n%s", diff)
			}
		})
	}
	for _, c := range []struct {
		give s3.Options
		want string
	}{
		{s3.Options{}, "give the name alone"},
		{s3.Options{Bucket: "a/b"}, "give the name alone"},
		{s3.Options{Bucket: "b"}, "set AWS_REGION"},
		{s3.Options{Bucket: "b", AccessKeyID: "k"}, "one is missing"},
		{s3.Options{Bucket: "b", Region: "r", Profile: "unknown"}, "unknown"},
		{s3.Options{Bucket: "b", Region: "r", PartSize: 1}, "at least 5242880"},
	} {
		if _, err := s3.New(t.Context(), c.give); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%+v) = %v, want %q in it", c.give, err, c.want)
		}
	}
}

// TestEndpointsThatAreNone: what may hold a secret is refused, and not repeated, wherever it was found.
func TestEndpointsThatAreNone(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	for _, endpoint := range []string{"http://h/?k=hush", "http://me:hush@h", "http://h/#hush", "hush", "hush://h", "http://%hush"} {
		for _, o := range []s3.Options{{Bucket: "b", Region: "r"}, {Bucket: "b", Region: "r", Endpoint: endpoint}} {
			t.Setenv("AWS_ENDPOINT_URL", endpoint)
			_, err := s3.New(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), "without a user, a query or a fragment") || strings.Contains(err.Error(), "hush") {
				t.Errorf("New with endpoint %q = %v, want a refusal that does not repeat it", endpoint, err)
			}
		}
	}
}
