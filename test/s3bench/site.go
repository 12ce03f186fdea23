package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/lancerest/lancerest/client"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/objstore/s3"
	"github.com/lancerest/lancerest/internal/objstore/s3/s3test"
	"github.com/lancerest/lancerest/internal/proctest"
)

// site is what one part is measured on.
type site struct {
	storage *s3test.Server
	binary  string
	dir     string
	delay   time.Duration

	*client.Client
	objects objstore.Store // as the server reaches it, with the delay
	direct  objstore.Store
	close   func() error
}

// build makes the server.
func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "lancerest")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/lancerest/lancerest/cmd/lancerest").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return binary, nil
}

// open starts the server.
func (s *site) open(ctx context.Context) error {
	endpoint, end, err := s.delayed()
	if err != nil {
		return err
	}
	s.close = end
	if s.objects, err = s.bucket(ctx, endpoint); err == nil {
		s.direct, err = s.bucket(ctx, s.storage.Endpoint)
	}
	if err == nil {
		err = s.serve(ctx, endpoint)
	}
	if err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

func (s *site) bucket(ctx context.Context, endpoint string) (objstore.Store, error) {
	return s3.New(ctx, s3.Options{
		Bucket: s.storage.Bucket, Endpoint: endpoint, Region: s.storage.Region, AccessKeyID: s.storage.AccessKey, SecretAccessKey: s.storage.SecretKey,
	})
}

// delayed is the address of the storage behind the delay.
func (s *site) delayed() (endpoint string, end func() error, err error) {
	if s.delay == 0 {
		return s.storage.Endpoint, func() error { return nil }, nil
	}
	target, err := url.Parse(s.storage.Endpoint)
	if err != nil {
		return "", nil, err
	}
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{MaxIdleConnsPerHost: 256},
		// Its own would print what is under way when the server ends.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		// The host stays: it is part of what is signed.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host
		},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(s.delay)
		proxy.ServeHTTP(w, r)
	}))
	return front.URL, func() error { front.Close(); return nil }, nil
}

// serve starts the server and waits until it says where it listens.
func (s *site) serve(ctx context.Context, endpoint string) error {
	config := fmt.Sprintf("[[root]]\nlocation = %q\nendpoint = %q\nallow_http = true\naccess_key_id = \"file:%s/id\"\nsecret_access_key = \"file:%s/key\"\n",
		s.storage.Root(), endpoint, s.dir, s.dir)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{"config.toml": config, "id": s.storage.AccessKey, "key": s.storage.SecretKey} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, s.binary, "serve", "--data", s.dir, "--config", filepath.Join(s.dir, "config.toml"), "--listen", "127.0.0.1:0", "--log-level", "warn", "--engine", "off")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	process, err := proctest.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return err
	}
	end := s.close
	s.close = func() error { process.Kill(); return end() }
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text()); address != "" {
			s.Client = client.New(address, client.Options{})
			return nil
		}
	}
	return errors.New("the server did not say where it listens")
}
