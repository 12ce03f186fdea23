// Package azuretest starts throw-away servers that speak Azure's Blob Storage for tests: Azurite, in memory, on loopback, on a free port. It
// fails the test, and says what to install, where there is none.
//
// What does not live here: the tests, and anything that a server of ours needs.
package azuretest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/lancerest/lancerest/internal/proctest"
)

// version is that of Azurite, as the Makefile installs it.
const version = "3.37.0"

// scriptVariable names Azurite's program.
const scriptVariable = "LANCEREST_AZURITE"

// The account that Azurite has, and its key, which everybody knows.
const (
	Account = "devstoreaccount1"
	Key     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// startTime is how long Azurite may take until it makes a container.
const startTime = 60 * time.Second

// Server is an emulator of Azure Blob Storage with one account.
type Server struct {
	Endpoint string // of the account: "http://127.0.0.1:PORT/devstoreaccount1"
	// HTTPClient reaches a server that was opened with OpenTLS. It is nil for others, which every client reaches.
	HTTPClient *http.Client
	dir        string // of the certificate
	address    string
	containers atomic.Int64
	output     bytes.Buffer
	process    *proctest.Process
}

// Start starts a server that ends with t, and with this process. It ends t if it cannot.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Open is Start for what is no test: whoever calls it calls Close.
func Open(ctx context.Context) (*Server, error) {
	script, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{}
	for range 5 { // another process may take the port first
		if err = s.launch(ctx, script); err == nil {
			return s, nil
		}
	}
	s.Close()
	return nil, fmt.Errorf("start Azurite: %w\n%s", err, s.output.String())
}

// OpenTLS is Open for a server that also takes access tokens (see Token), which are sent over TLS alone. Its endpoint names the account in its
// host, as Azure's do: signatures are made for that name. HTTPClient finds that host and trusts the server.
func OpenTLS(ctx context.Context) (*Server, error) {
	script, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if s.dir, err = os.MkdirTemp("", "lancerest-azurite-"); err != nil {
		return nil, err
	}
	trusted, err := certificate(s.dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	s.HTTPClient = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.address)
		},
	}}
	for range 5 {
		if err = s.launch(ctx, script); err == nil {
			return s, nil
		}
	}
	s.Close()
	return nil, fmt.Errorf("start Azurite with TLS: %w\n%s", err, s.output.String())
}

// Close ends the server.
func (s *Server) Close() {
	if s.process != nil {
		s.process.Kill()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir) // a leftover harms nobody
	}
}

// Container makes a container that is nobody else's and returns its name.
func (s *Server) Container(t testing.TB) string {
	t.Helper()
	name, err := s.NewContainer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// NewContainer is Container for what is no test.
func (s *Server) NewContainer(ctx context.Context) (string, error) {
	name := fmt.Sprintf("container-%d", s.containers.Add(1))
	client, err := s.Client(name)
	if err != nil {
		return "", err
	}
	_, err = client.Create(ctx, nil)
	return name, err
}

// Client returns a plain client of a container, for what tests do behind the back of the code under test.
func (s *Server) Client(name string) (*container.Client, error) {
	key, err := container.NewSharedKeyCredential(Account, Key)
	if err != nil {
		return nil, err
	}
	options := &container.ClientOptions{}
	if s.HTTPClient != nil {
		options.Transport = s.HTTPClient
	}
	return container.NewClientWithSharedKeyCredential(s.Endpoint+"/"+name, key, options)
}

// Environ returns an environment, such as os.Environ, in which clients find this server and nothing else.
func (s *Server) Environ(base []string) []string {
	var env []string
	for _, v := range base {
		if !strings.HasPrefix(v, "AZURE_") && !strings.HasPrefix(v, "AZURITE_") {
			env = append(env, v)
		}
	}
	return append(env, "AZURE_STORAGE_ACCOUNT_NAME="+Account, "AZURE_STORAGE_ACCOUNT_KEY="+Key, "AZURE_STORAGE_ENDPOINT="+s.Endpoint, "AZURE_ALLOW_HTTP=true")
}

// find finds Azurite's program for blobs.
func find() (string, error) {
	if given := os.Getenv(scriptVariable); given != "" {
		return given, nil
	}
	if path, err := exec.LookPath("azurite-blob"); err == nil {
		return path, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, ".tools", "azurite", "node_modules", ".bin", "azurite-blob")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("these tests need Azurite, an emulator of Azure Blob Storage, and Node.js: make tools installs Azurite into .tools; elsewhere: " +
				"npm install -g azurite@" + version + ", with azurite-blob in the PATH or named by " + scriptVariable)
		}
		dir = up
	}
}

// launch starts Azurite and waits until it makes a container.
func (s *Server) launch(ctx context.Context, script string) error {
	ports, err := proctest.FreePorts(1)
	if err != nil {
		return err
	}
	port := strconv.Itoa(ports[0])
	s.address = net.JoinHostPort("127.0.0.1", port)
	s.Endpoint = "http://" + s.address + "/" + Account
	args := []string{"--blobHost", "127.0.0.1", "--blobPort", port, "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"}
	if s.dir != "" {
		s.Endpoint = "https://" + Account + "." + domain + ":" + port
		args = append(args, "--oauth", "basic", "--cert", filepath.Join(s.dir, certificateFile), "--key", filepath.Join(s.dir, keyFile))
	}
	cmd := exec.Command(script, args...)
	s.output.Reset()
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	if s.process, err = proctest.Start(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		if err = s.reachable(ctx); err == nil {
			_, err = s.NewContainer(ctx)
			return err
		}
		select {
		case <-s.process.Exited():
			return fmt.Errorf("it ended: %w", s.process.Err())
		case <-ctx.Done():
			s.process.Kill()
			return fmt.Errorf("it does not listen after %s: %w", startTime, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// reachable reports whether something listens at the endpoint.
func (s *Server) reachable(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	return conn.Close()
}
