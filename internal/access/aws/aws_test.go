package aws_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/access/accesstest"
	"github.com/lancerest/lancerest/internal/access/aws"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/s3"
	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
)

// server is the S3 server of all tests in this package.
var server *s3test.Server

func TestMain(m *testing.M) {
	os.Exit(s3test.Main(m, func(s *s3test.Server) { server = s }))
}

// life is how long keys live that nobody waits for the end of: the shortest that the server makes.
const life = 15 * time.Minute

// provider returns a provider of keys for the server's bucket, with the operator's keys.
func provider(t *testing.T, s *s3test.Server, change ...func(*aws.Options)) *aws.Provider {
	t.Helper()
	o := aws.Options{
		Bucket: s.Bucket, Endpoint: s.Endpoint, Region: s.Region, PathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(s.AccessKey, s.SecretKey, ""),
		Vend:        aws.Vending{RoleARN: s.Role, Duration: life},
	}
	for _, f := range change {
		f(&o)
	}
	p, err := aws.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// store returns a store in the server's bucket with the given keys.
func store(t *testing.T, s *s3test.Server, id, secret, token string) objstore.Store {
	t.Helper()
	store, err := s3.New(t.Context(), s3.Options{
		Bucket: s.Bucket, Endpoint: s.Endpoint, Region: s.Region, AccessKeyID: id, SecretAccessKey: secret, SessionToken: token, Pause: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func withKeys(t *testing.T, s *s3test.Server, keys access.Keys) objstore.Store {
	t.Helper()
	return store(t, s, keys.Values["aws_access_key_id"], keys.Values["aws_secret_access_key"], keys.Values["aws_session_token"])
}

func location(t *testing.T, uri string) lance.Location {
	t.Helper()
	loc, err := lance.ParseLocation(uri)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestVendor(t *testing.T) {
	t.Parallel()
	accesstest.Run(t, func(t *testing.T) accesstest.World {
		w := world(t, server)
		w.Brief = func(t *testing.T) accesstest.World { return world(t, s3test.Brief(t, 5*time.Second)) }
		return w
	})
}

func world(t *testing.T, s *s3test.Server) accesstest.World {
	t.Helper()
	return accesstest.World{
		Vendor: provider(t, s), Life: min(life, s.Session), Root: location(t, s.Root()), Owner: store(t, s, s.AccessKey, s.SecretKey, ""),
		Open:      func(t *testing.T, keys access.Keys) objstore.Store { return withKeys(t, s, keys) },
		Unreached: "SeaweedFS knows no escape of wildcards, and takes a backslash for a slash",
		CaseBlind: "SeaweedFS matches the objects of a policy without regard to case",
	}
}

// TestListing: clients list a directory with and without the slash after it, and nothing else (case F3).
func TestListing(t *testing.T) {
	t.Parallel()
	root := location(t, server.Root())
	owner := store(t, server, server.AccessKey, server.SecretKey, "")
	for _, dir := range []string{"t", "t2", "t/data"} {
		if _, err := owner.PutIfAbsent(t.Context(), root.Key()+"/"+dir+"/x", nil); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := root.Join("t")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := provider(t, server).Vend(t.Context(), dir, access.Read)
	if err != nil {
		t.Fatal(err)
	}
	client := awss3.New(awss3.Options{
		BaseEndpoint: &server.Endpoint, Region: server.Region, UsePathStyle: true, Retryer: sdk.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider(keys.Values["aws_access_key_id"], keys.Values["aws_secret_access_key"], keys.Values["aws_session_token"]),
	})
	for prefix, allowed := range map[string]bool{
		dir.Key(): true, dir.Key() + "/": true, dir.Key() + "/data/": true, dir.Key() + "/_versions": true,
		"": false, root.Key(): false, root.Key() + "/": false, dir.Key() + "2": false, dir.Key() + "2/": false, dir.Key()[:len(dir.Key())-1]: false,
	} {
		_, err := client.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: &server.Bucket, Prefix: &prefix})
		if (err == nil) != allowed {
			t.Errorf("list %q: %v, want allowed %t", prefix, err, allowed)
		}
	}
	if _, err := client.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: &server.Bucket}); err == nil {
		t.Error("the keys list the whole bucket")
	}
}

// TestFailures: what the token service answers, or does not, is one of the contract's errors, and holds no secret.
func TestFailures(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil { // nobody answers there
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*aws.Options)
		want   error
	}{
		{"nobody there", func(o *aws.Options) { o.Vend.Endpoint = silent }, access.ErrUnavailable},
		{"wrong keys", func(o *aws.Options) {
			o.Credentials = credentials.NewStaticCredentialsProvider(server.AccessKey, "hush", "")
		}, access.ErrRefused},
		{"no keys", func(o *aws.Options) { o.Credentials = sdk.AnonymousCredentials{} }, access.ErrRefused},
		{"no such role", func(o *aws.Options) { o.Vend.RoleARN += "-not" }, access.ErrRefused},
		{"a life too short", func(o *aws.Options) { o.Vend.Duration = time.Minute }, access.ErrRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := provider(t, server, c.change).Vend(t.Context(), location(t, "s3://"+server.Bucket+"/x/t"), access.Read)
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if text := err.Error(); strings.Contains(text, "hush") || strings.Contains(text, server.SecretKey) {
				t.Errorf("%s shows a secret", text)
			}
		})
	}
}

// TestOwn: the operator's own keys, with their end where they have one.
func TestOwn(t *testing.T) {
	t.Parallel()
	ends := time.Now().Add(time.Hour)
	temporary := sdk.CredentialsProviderFunc(func(context.Context) (sdk.Credentials, error) {
		return sdk.Credentials{AccessKeyID: "id", SecretAccessKey: "secret", SessionToken: "token", CanExpire: true, Expires: ends}, nil
	})
	for _, c := range []struct {
		name  string
		from  sdk.CredentialsProvider
		want  map[string]string
		ends  time.Time
		fails error
	}{
		{name: "for ever", from: credentials.NewStaticCredentialsProvider("id", "secret", ""), want: map[string]string{"aws_access_key_id": "id", "aws_secret_access_key": "secret"}},
		{name: "for a time", from: temporary, ends: ends, want: map[string]string{"aws_access_key_id": "id", "aws_secret_access_key": "secret", "aws_session_token": "token"}},
		{name: "none", fails: access.ErrRefused},
	} {
		keys, err := provider(t, server, func(o *aws.Options) { o.Credentials = c.from }).Own(t.Context())
		if diff := cmp.Diff(c.want, keys.Values); diff != "" || !errors.Is(err, c.fails) || !keys.Expires.Equal(c.ends) {
			t.Errorf("%s: until %s, %v (-want +got):\n%s", c.name, keys.Expires, err, diff)
		}
	}
}

// TestOwnRenewed: own keys that are about to end are asked for anew, although the SDK would keep them.
func TestOwnRenewed(t *testing.T) {
	t.Parallel()
	asked := 0
	machine := sdk.NewCredentialsCache(sdk.CredentialsProviderFunc(func(context.Context) (sdk.Credentials, error) {
		asked++
		return sdk.Credentials{AccessKeyID: strconv.Itoa(asked), SecretAccessKey: "secret", CanExpire: true, Expires: time.Now().Add(time.Duration(asked) * 4 * time.Minute)}, nil
	}))
	p := provider(t, server, func(o *aws.Options) { o.Credentials = machine })
	for range 2 {
		keys, err := p.Own(t.Context())
		if err != nil || keys.Values["aws_access_key_id"] != "2" {
			t.Errorf("keys %q, %v; want the second, which live for 8 minutes", keys.Values["aws_access_key_id"], err)
		}
	}
}

// TestSettings: what clients need beside keys, as Lance's object store reads it.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		opts aws.Options
		want map[string]string
	}{
		{"Amazon", aws.Options{Region: "eu-west-1"}, map[string]string{"aws_region": "eu-west-1", "aws_virtual_hosted_style_request": "true"}},
		{"Amazon, a dotted bucket", aws.Options{Region: "eu-west-1", PathStyle: true}, map[string]string{"aws_region": "eu-west-1", "aws_virtual_hosted_style_request": "false"}},
		{"a server of one's own", aws.Options{Endpoint: "http://127.0.0.1:8333/", Region: "us-east-1", PathStyle: true}, map[string]string{
			"aws_region": "us-east-1", "aws_virtual_hosted_style_request": "false", "aws_endpoint": "http://127.0.0.1:8333", "allow_http": "true",
		}},
		{"its bucket in the host name", aws.Options{Endpoint: "https://s3.example.org:9000", Region: "auto"}, map[string]string{
			"aws_region": "auto", "aws_virtual_hosted_style_request": "true", "aws_endpoint": "https://lake.s3.example.org:9000",
		}},
	} {
		c.opts.Bucket = "lake"
		p, err := aws.New(c.opts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, p.Settings()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestAmazonLeast: a life that Amazon would refuse for every table is refused at the start.
func TestAmazonLeast(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]bool{"": false, "https://s3.eu-west-1.amazonaws.com": false, "https://s3.example.org": true} {
		_, err := aws.New(aws.Options{Endpoint: endpoint, Vend: aws.Vending{RoleARN: "arn:aws:iam::1:role/x", Duration: time.Minute}})
		if (err == nil) != want {
			t.Errorf("endpoint %q: %v, want accepted %t", endpoint, err, want)
		}
	}
}

// TestTokenServiceOfTheEnvironment: an address that may hold a secret is refused, and not repeated.
func TestTokenServiceOfTheEnvironment(t *testing.T) {
	for _, endpoint := range []string{"http://h/?k=hush", "http://me:hush@h", "http://h/#hush", "http://%hush"} {
		t.Setenv("AWS_ENDPOINT_URL_STS", endpoint)
		_, err := aws.New(aws.Options{Bucket: "b", Region: "r", Vend: aws.Vending{RoleARN: "arn:aws:iam::1:role/r", Duration: time.Hour}})
		if err == nil || !strings.Contains(err.Error(), "AWS_ENDPOINT_URL_STS") || strings.Contains(err.Error(), "hush") {
			t.Errorf("New with %q = %v, want a refusal that does not repeat it", endpoint, err)
		}
	}
}
