// Package app puts a server together: configuration in, running server out. It is the only importer of implementations.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/config"
	"github.com/lancerest/lancerest/internal/engine"
	"github.com/lancerest/lancerest/internal/engine/durable"
	"github.com/lancerest/lancerest/internal/engine/worker"
	"github.com/lancerest/lancerest/internal/httpapi"
	"github.com/lancerest/lancerest/internal/jobs"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/telemetry"
)

// Config says how to serve. Zero values mean the defaults.
type Config struct {
	// Data is the directory of the state, and of tables unless Root says otherwise (default "lancerest-data"). It is made if missing.
	Data string
	// State is the address of a PostgreSQL database that keeps the state instead of Data, "postgres://…": any number of servers with
	// the same Root may share it.
	State string
	// StatePool says how that database is used; zero values mean its defaults.
	StatePool StatePool
	// ConfigFile names a file that says more of roots than Root and Allow can (package config); these win over it.
	ConfigFile string
	// Root is where new tables go: a directory, which is made if missing, or a URI. The default is what ConfigFile says, or else Data/tables.
	Root string
	// Allow are further places in which tables may live: those to register, and those of a root that was used before.
	Allow []string
	// Credentials is what clients of the tables under Root are given (none, static, vend or client), and STSRoleARN the role that is assumed
	// for vended keys.
	Credentials, STSRoleARN string
	// Listen is the address to serve on (default 127.0.0.1:2333; port 0 picks a free one).
	Listen string
	// Insecure allows an address that is not loopback although nobody is authenticated.
	Insecure bool
	// Version of the binary, for the published document.
	Version string
	// Logger receives what operators need to know (default: nothing).
	Logger *slog.Logger
	// Limits bound what requests may use.
	Limits httpapi.Limits
	// MaxBatch bounds the entries of one batch (default 10,000).
	MaxBatch int
	// HeaderMax bounds the bytes of a request's head (default 64 KiB).
	HeaderMax int
	// IdleTime is how long a connection may rest between requests (default 620 s).
	IdleTime time.Duration
	// Drain bounds how long requests under way may take once the server is asked to stop (default 30 s).
	Drain time.Duration
	// StagedKeep is how long a staged manifest outlives the commit that published it (default 10 s; C10).
	StagedKeep time.Duration
	// Reconcile is how often the versions of tables in use are compared with storage (default 1 minute; below 0 never).
	Reconcile time.Duration
	// Databases says what the name of a database means that LanceDB's SDKs send (default httpapi.DatabaseOne).
	Databases httpapi.Databases
	// Engine says who performs the operations on data (default: worker processes of this server).
	Engine Engine
	// Traces is the URL of the collector that traces are posted to as OTLP, in full (default: no traces).
	Traces string
}

// The timeouts of connections. Clients keep connections for up to 300 s and do not retry on one that was closed under their hands
// (client contract, trap 22), so that idle ones live longer than that.
const (
	headerTimeout = 30 * time.Second
	idleTimeout   = 620 * time.Second
	headerMax     = 64 << 10
	idleLeast     = 310 * time.Second
)

// headerLeast holds what clients send in a head: a URL with a long id, credentials and the headers of proxies.
const headerLeast = 4 << 10

// tracesDrain bounds how long a server that stops waits for its collector.
const tracesDrain = 5 * time.Second

// App is a server that has its state open and its address bound. Create it with New, then Run it, then Close it.
type App struct {
	config   Config
	settings []config.Root  // the first is where new tables go
	roots    []catalog.Root // of the settings
	store    store.Store
	catalog  *catalog.Catalog
	runner   *jobs.Runner
	handler  *httpapi.Handler
	traces   *telemetry.Traces // nil where none are wanted
	engine   *worker.Engine    // nil where there is none, or it is not of workers
	durable  *durable.Engine   // the jobs of engine
	server   *http.Server
	listener net.Listener
	// engineToken is the secret by which workers' requests are known.
	engineToken string
	// commits knows what workers have committed, nil where they may ask another server.
	commits *engine.Commits
	closing sync.Once
	closed  error
}

// New opens the state, migrating it if it is older than the binary, and binds the address, so that a port in use is an error
// here and not a line in the log later. On an error nothing stays open.
func New(ctx context.Context, c Config) (*App, error) {
	setDefaults(&c)
	if err := errors.Join(checkListen(c), checkLimits(c), checkState(c)); err != nil {
		return nil, err
	}
	settings, err := settle(c)
	if err != nil {
		return nil, err
	}
	a := &App{config: c, settings: settings}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Defaults returns the configuration of a server that is told nothing. MaxBatch and StagedKeep stay zero: their defaults are the
// catalog's.
func Defaults() Config {
	var c Config
	setDefaults(&c)
	c.Limits = httpapi.DefaultLimits()
	return c
}

func setDefaults(c *Config) {
	if c.Data == "" {
		c.Data = "lancerest-data"
	}
	if c.Root == "" && c.ConfigFile == "" {
		c.Root = filepath.Join(c.Data, "tables")
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:2333"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.HeaderMax == 0 {
		c.HeaderMax = headerMax
	}
	if c.IdleTime == 0 {
		c.IdleTime = idleTimeout
	}
	if c.Drain == 0 {
		c.Drain = 30 * time.Second
	}
	if c.Reconcile == 0 {
		c.Reconcile = time.Minute
	}
	c.StatePool.setDefaults()
	if c.Databases == "" {
		c.Databases = httpapi.DatabaseOne
	}
	c.Engine.setDefaults()
}

// checkLimits refuses what would make a server that nobody can use. The limits of requests are checked by package httpapi.
func checkLimits(c Config) error {
	var errs []error
	if c.IdleTime < idleLeast {
		errs = append(errs, fmt.Errorf("idle time %s: it must be at least %s, because clients keep connections for up to 300 s and fail on one that was closed", c.IdleTime, idleLeast))
	}
	if c.HeaderMax < headerLeast {
		errs = append(errs, fmt.Errorf("header limit of %d bytes: it must be at least %d, or requests with credentials do not fit", c.HeaderMax, headerLeast))
	}
	if c.MaxBatch < 0 {
		errs = append(errs, fmt.Errorf("batches of %d entries: it must be at least 1", c.MaxBatch))
	}
	if c.Drain < 0 {
		errs = append(errs, fmt.Errorf("drain time %s: it must be above 0", c.Drain))
	}
	if c.StagedKeep < 0 {
		errs = append(errs, fmt.Errorf("staged manifests kept for %s: it must be above 0", c.StagedKeep))
	}
	return errors.Join(errs...)
}

// checkListen refuses to serve beyond this machine as long as anybody may do everything.
func checkListen(c Config) error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("listen address %q: it must be HOST:PORT, such as 127.0.0.1:2333: %w", c.Listen, err)
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() || c.Insecure {
		return nil
	}
	return fmt.Errorf("listen address %q can be reached from other machines, and there is no authentication yet: listen on 127.0.0.1, or add --insecure if everybody who can reach it may do everything", c.Listen)
}

func (a *App) open(ctx context.Context) error {
	if err := makeDirs(a.config, a.settings); err != nil {
		return err
	}
	var err error
	if a.roots, err = openRoots(ctx, a.config, a.settings); err != nil {
		return err
	}
	for _, r := range a.roots {
		if warning := r.Warning(); warning != "" {
			a.config.Logger.LogAttrs(ctx, slog.LevelWarn, warning)
		}
	}
	warnOfOwnKeys(a.config.Logger, a.roots)
	ctx = store.WithOperation(ctx, "start")
	state, err := openState(ctx, a.config)
	if err != nil {
		return err
	}
	a.store = state
	a.runner = jobs.New(jobs.Options{
		Store: state, Logger: a.config.Logger, Kinds: catalog.JobKinds(),
		Run: func(ctx context.Context, job store.Job) error { return a.catalog.RunJob(ctx, job) },
	})
	own, err := reserved(a.config)
	if err != nil {
		return err
	}
	a.catalog, err = openCatalog(ctx, catalog.Options{
		Store: state, Roots: a.roots, Reserved: own, Notify: a.notify, Wake: a.runner.Wake,
		MaxBatch: a.config.MaxBatch, StagedKeep: a.config.StagedKeep, KeepUnsynced: !onPostgres(a.config),
	})
	if err != nil {
		return err
	}
	if n, err := a.catalog.RestoreUnsynced(ctx); err != nil {
		return fmt.Errorf("after writing %d manifests again that storage had lost: %w", n, err)
	}
	if a.config.Traces != "" {
		a.traces, err = telemetry.NewTraces(ctx, telemetry.TraceOptions{Endpoint: a.config.Traces, Version: a.config.Version, Report: a.tracesReport})
		if err != nil {
			return err
		}
	}
	a.server = &http.Server{
		ReadHeaderTimeout: headerTimeout, IdleTimeout: a.config.IdleTime, MaxHeaderBytes: a.config.HeaderMax,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(a.config.Logger.Handler(), slog.LevelWarn),
	}
	a.listener, err = net.Listen("tcp", a.config.Listen)
	if err != nil {
		return fmt.Errorf("%w: choose another address with --listen", err)
	}
	return a.openHandler(ctx, telemetry.New(a.catalog, counts(a.catalog, state)))
}

// openHandler makes the handler, and what it hands data operations to, which must know where the server can be reached.
func (a *App) openHandler(ctx context.Context, metrics *telemetry.Metrics) error {
	performer, err := a.openEngine(ctx, metrics)
	if err != nil {
		return err
	}
	a.handler, err = httpapi.New(httpapi.Options{
		Catalog: a.catalog, Logger: a.config.Logger, Version: a.config.Version, Metrics: metrics,
		Traces: a.traces, Limits: a.config.Limits, Engine: performer, EngineToken: a.engineToken, Commits: a.commits, JobKinds: durable.Kinds(), Databases: a.config.Databases,
	})
	if err != nil {
		return err
	}
	a.server.Handler = a.handler
	return nil
}

// notify logs what happened to tables without anybody asking for it.
func (a *App) notify(ctx context.Context, e catalog.Event) {
	level := slog.LevelInfo
	if e.Kind == catalog.EventAborted || e.Kind == catalog.EventZombie || e.Kind == catalog.EventSkipped || e.Kind == catalog.EventRestored || e.Kind == catalog.EventUnsynced || e.Kind == catalog.EventShared || e.Kind == catalog.EventKeyless {
		level = slog.LevelWarn
	}
	a.config.Logger.LogAttrs(ctx, level, string(e.Kind), slog.String("table", e.Table), slog.Int64("version", int64(e.Version)),
		slog.String("transaction", string(e.Transaction)), slog.String("detail", e.Detail))
}

// tracesReport logs that the collector cannot be reached, and that it can again.
func (a *App) tracesReport(err error) {
	if err != nil {
		a.config.Logger.LogAttrs(context.Background(), slog.LevelWarn, "traces cannot be delivered", slog.String("error", err.Error()))
		return
	}
	a.config.Logger.LogAttrs(context.Background(), slog.LevelWarn, "traces are delivered again")
}

// URL is where the server can be reached.
func (a *App) URL() string { return "http://" + a.listener.Addr().String() }

// Root is where new tables go.
func (a *App) Root() string { return a.roots[0].Location.String() }

// partingTime is how long connections are given to end by themselves once nothing is under way on them.
const partingTime = 2 * time.Second

// State names the database of the state, "" for the file in the data directory.
func (a *App) State() string {
	if p, ok := a.store.(*sqlstore.Postgres); ok {
		return p.String()
	}
	return ""
}

// recoverEvery is how often the background looks for transactions that nobody finished.
const recoverEvery = 30 * time.Second

// Run serves until ctx ends, then stops gracefully: requests under way end, new ones get 503 code 17 (case J8). It returns nil after
// a graceful stop. Transactions that an earlier process left pending are finished first of all in the background.
func (a *App) Run(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { a.runner.Run(background) })
	wg.Go(func() { a.recover(background) })
	// A server that stops gives its jobs back at once: others go on with them while it still ends its requests.
	working, rest := context.WithCancel(ctx)
	defer rest()
	if a.engine != nil {
		a.engine.Start()
		wg.Go(func() { a.durable.Run(working) })
	}
	wg.Go(func() { a.reconcile(background) })
	served := make(chan error, 1)
	go func() { served <- a.server.Serve(jsonListener{a.listener}) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		err = a.stop(served)
	}
	rest()
	stop()
	wg.Wait()
	return err
}

// stop lets requests under way end. While they do the listener stays open, so that others are told what is going on.
func (a *App) stop(served <-chan error) error {
	a.config.Logger.Info("stopping: requests under way may end, new ones are refused")
	a.handler.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), a.config.Drain)
	defer cancel()
	err := a.handler.Wait(ctx)
	// What is left are connections on which nothing is under way: idle, or sending a request that would be refused.
	parting, done := context.WithTimeout(ctx, partingTime)
	defer done()
	if a.server.Shutdown(parting) != nil {
		err = errors.Join(err, a.server.Close())
	}
	if s := <-served; !errors.Is(s, http.ErrServerClosed) {
		err = errors.Join(err, s)
	}
	return err
}

// recover finishes what was left pending, at once after the start, then from time to time (C7).
func (a *App) recover(ctx context.Context) {
	ctx = store.WithOperation(ctx, "recover")
	scope := catalog.RecoverAll
	ticker := time.NewTicker(recoverEvery)
	defer ticker.Stop()
	for {
		if n, err := a.catalog.Recover(ctx, scope); err != nil && ctx.Err() == nil {
			a.config.Logger.LogAttrs(ctx, slog.LevelError, "pending transactions could not all be finished", slog.Int("found", n), slog.String("error", err.Error()))
		}
		if err := a.catalog.ForgetAnswers(ctx); err != nil && ctx.Err() == nil {
			a.config.Logger.LogAttrs(ctx, slog.LevelError, "old answers could not be removed", slog.String("error", err.Error()))
		}
		scope = catalog.RecoverStale
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// reconcile compares tables in use with storage from time to time.
func (a *App) reconcile(ctx context.Context) {
	if a.config.Reconcile < 0 {
		return
	}
	ctx = store.WithOperation(ctx, "reconcile")
	ticker := time.NewTicker(a.config.Reconcile)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if n, err := a.catalog.Reconcile(ctx); err != nil && ctx.Err() == nil {
			a.config.Logger.LogAttrs(ctx, slog.LevelWarn, "tables in use could not all be compared with storage", slog.Int("tables", n), slog.String("error", err.Error()))
		}
	}
}

// Close releases everything, waiting for commits in flight. It may be called twice, and before Run.
func (a *App) Close() error {
	a.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), a.config.Drain)
		defer cancel()
		var errs []error
		if a.listener != nil {
			if err := a.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
		if a.engine != nil {
			a.engine.Close()
		}
		if a.catalog != nil {
			errs = append(errs, a.catalog.Close(ctx))
		}
		if a.store != nil {
			errs = append(errs, a.store.Close())
		}
		a.closeTraces()
		a.closed = errors.Join(errs...)
	})
	return a.closed
}

// closeTraces sends the last spans. That they cannot be sent is told and is no reason for the server to fail.
func (a *App) closeTraces() {
	ctx, cancel := context.WithTimeout(context.Background(), min(tracesDrain, a.config.Drain))
	defer cancel()
	if err := a.traces.Close(ctx); err != nil {
		a.tracesReport(err)
	}
}
