package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/config"
	"github.com/lancerest/lancerest/internal/engine"
	"github.com/lancerest/lancerest/internal/engine/durable"
	"github.com/lancerest/lancerest/internal/engine/worker"
	"github.com/lancerest/lancerest/internal/httpapi"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/telemetry"
	files "github.com/lancerest/lancerest/workers/lance"
)

// The engines that a server can have without being given addresses.
const (
	EngineOff  = "off"
	EngineAuto = "auto"
)

// Databases says what the name of a database means that LanceDB's SDKs send: one, or namespace.
type Databases = httpapi.Databases

// Engine says who performs the operations on data.
type Engine struct {
	// Kind is EngineAuto (the default) for worker processes of this server, EngineOff, or the addresses of workers that somebody else runs,
	// separated by commas: unix:PATH or HOST:PORT.
	Kind string
	// Python has the libraries that workers need. The default is what InstallEngine has made in the data directory, else python3 if that has
	// them in the pinned versions; where neither is there the first is made.
	Python string
	// Workers is how many processes there are, 0 for one a processor.
	Workers int
	// Memory is the bytes from which a process is replaced, 0 for 4 GiB.
	Memory int64
	// Secret is what workers of somebody else want to be shown, and URL where they reach this server (default: its own address).
	Secret, URL string
}

func (e *Engine) setDefaults() {
	e.Kind = cmp.Or(e.Kind, EngineAuto)
	e.Memory = cmp.Or(e.Memory, engineMemory)
}

// engineMemory is what a worker may have.
const engineMemory = 4 << 30

// defaultPython is the Python that an environment is made with.
const defaultPython = "python3"

// engineEnvironment is where a server keeps what its workers run in.
func engineEnvironment(data string) worker.Environment {
	return worker.Environment{Dir: filepath.Join(data, "engine"), Files: files.Files}
}

// InstallEngine makes what workers run in, inside a data directory, with a Python ("" for python3), and returns its path. It writes what
// is going on to w. Errors: the Python is not there or not new enough, the directory cannot be written, or the libraries cannot be downloaded.
func InstallEngine(ctx context.Context, data, python string, w io.Writer) (string, error) {
	made, err := engineEnvironment(data).Install(ctx, cmp.Or(python, defaultPython), w)
	if err != nil {
		return "", fmt.Errorf("install the engine's libraries: %w", err)
	}
	return made, nil
}

// accessOfEngine returns how the engine's workers reach a root: with the operator's own keys, however clients do. It is nil where there is
// no engine, and for directories.
func accessOfEngine(ctx context.Context, c Config, r config.Root, at lance.Location, objects objstore.Store) (*access.Access, error) {
	if c.Engine.Kind == EngineOff || c.Engine.Kind == "" || !distant(at) {
		return nil, nil
	}
	r.Credentials, r.Vend = string(access.Static), config.Vending{}
	own, err := accessTo(ctx, r, at, objects)
	if err != nil && c.Engine.Kind == EngineAuto {
		// An engine that nobody asked for is no reason not to start.
		c.Logger.LogAttrs(ctx, slog.LevelWarn, "the engine's workers are not given the server's own keys and reach this root with what their machine has",
			slog.String("root", at.String()), slog.String("error", err.Error()))
		r.Credentials = string(access.Client)
		return accessTo(ctx, r, at, objects)
	}
	return own, err
}

// openEngine puts the engine together. It has no workers, and performs no jobs, before Run.
func (a *App) openEngine(ctx context.Context, metrics *telemetry.Metrics) (engine.Engine, error) {
	c := a.config.Engine
	if c.Kind == EngineOff {
		return engine.None{}, nil
	}
	a.engineToken = rand.Text()
	opts := worker.Options{
		Catalog: a.catalog, URL: c.URL, Token: a.engineToken, Secret: c.Secret, Workers: c.Workers, Memory: c.Memory, Logger: a.config.Logger,
	}
	if opts.URL == "" {
		opts.URL = ownURL(a.listener.Addr())
		a.commits = engine.NewCommits(rand.Text())
		opts.Commits = a.commits
	}
	if c.Kind != EngineAuto {
		opts.Addresses = strings.Split(c.Kind, ",")
	} else {
		if err := a.findPython(); err != nil {
			a.config.Logger.LogAttrs(ctx, slog.LevelWarn, "there is no engine: it needs Python 3.10 or newer; the catalog serves everything else", slog.String("error", err.Error()))
			return engine.None{Because: ", because it found no Python when it started, which the engine's workers run in (3.10 or newer)"}, nil
		}
		opts.Prepare = a.engineCommand
	}
	a.engine = worker.New(opts)
	a.durable = durable.New(durable.Options{Worker: a.engine, Catalog: a.catalog, Store: a.store, Logger: a.config.Logger, Alone: !onPostgres(a.config), Observe: func(operation string, status api.TransactionStatus, took time.Duration) {
		metrics.ObserveJob(operation, string(status), took)
	}})
	return a.durable, nil
}

// findPython looks whether there is a Python to run workers with, or to make their environment with.
func (a *App) findPython() error {
	installed, err := engineEnvironment(a.config.Data).Installed()
	if err != nil || installed != "" {
		return err
	}
	_, err = exec.LookPath(cmp.Or(a.config.Engine.Python, defaultPython))
	return err
}

// installLog is where the engine's directory has what an installation said.
const installLog = "install.log"

// engineCommand returns how a worker is started, installing what it needs if that was not done before.
func (a *App) engineCommand(ctx context.Context, tell func(sentence string)) (worker.Command, error) {
	env := engineEnvironment(a.config.Data)
	python := a.config.Engine.Python
	if python == "" {
		var err error
		if python, err = env.Installed(); err != nil {
			return worker.Command{}, err
		}
	}
	if python == "" && env.Suits(ctx, defaultPython) {
		python = defaultPython
	}
	if python == "" {
		a.config.Logger.LogAttrs(ctx, slog.LevelWarn, "installing the engine's libraries, which takes some minutes; lancerest engine install does it beforehand",
			slog.String("log", filepath.Join(env.Dir, installLog)))
		var err error
		if python, err = installWhile(ctx, env, tell); err != nil {
			return worker.Command{}, err
		}
		a.config.Logger.LogAttrs(ctx, slog.LevelInfo, "the engine's libraries are installed", slog.String("python", python))
	}
	return env.Command(python)
}

// installWhile installs what workers need, tells how far that is, and keeps what is said in the file installLog.
func installWhile(ctx context.Context, env worker.Environment, tell func(sentence string)) (_ string, err error) {
	if err := os.MkdirAll(env.Dir, 0o755); err != nil {
		return "", err
	}
	log, err := os.OpenFile(filepath.Join(env.Dir, installLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) // another server may write it too
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	p := &progress{log: log, tell: tell, began: time.Now().UTC()}
	p.say("it has begun")
	return env.Install(ctx, defaultPython, p)
}

// progress keeps what an installation says, and tells it.
type progress struct {
	log   io.Writer
	tell  func(sentence string)
	began time.Time
}

// Write implements io.Writer.
func (p *progress) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		// What follows is where a file lies, here or elsewhere.
		what, _, _ := strings.Cut(strings.TrimSpace(line), " (")
		for _, told := range []string{"Collecting ", "Downloading ", "Installing ", "Waiting "} {
			if strings.HasPrefix(what, told) && !strings.Contains(what, "://") {
				p.say(what)
			}
		}
	}
	return p.log.Write(text)
}

func (p *progress) say(what string) {
	p.tell(fmt.Sprintf("the engine is being installed since %s, which takes some minutes (%s; engine/%s in the server's data directory has all of it)",
		p.began.Format(time.DateTime+" MST"), what, installLog))
}

// ownURL is where this machine reaches a server that listens on an address.
func ownURL(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
	}
	return "http://" + at.String()
}
