package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lancerest/lancerest/internal/app"
)

type serveCommand struct {
	Data       string `help:"Directory of the catalog's state (catalog.db) and, unless --root says otherwise, of the tables." default:"./lancerest-data" env:"LANCEREST_DATA"`
	State      string `help:"PostgreSQL database (15 or newer) that keeps the state instead of the data directory; any number of servers may share it." env:"LANCEREST_STATE" placeholder:"postgres://USER:PASSWORD@HOST/DATABASE"`
	Config     string `help:"File that says more of roots than flags can; see below." env:"LANCEREST_CONFIG" placeholder:"FILE"`
	roots      `embed:""`
	Listen     string        `help:"Address to serve on." default:"127.0.0.1:2333" env:"LANCEREST_LISTEN"`
	Insecure   bool          `help:"Serve on an address that other machines can reach, although there is no authentication." env:"LANCEREST_INSECURE"`
	LogLevel   string        `help:"What to log: debug, info (a line a request), warn or error." enum:"debug,info,warn,error" default:"info" env:"LANCEREST_LOG_LEVEL"`
	StagedKeep time.Duration `help:"Time that a staged manifest outlives the commit that published it, so that the commit can be completed again if its object is lost." default:"10s" env:"LANCEREST_STAGED_KEEP"`
	Reconcile  time.Duration `help:"How often the versions of tables in use are compared with storage, for what writers and cleanups did past the catalog; 0s for never." default:"1m" env:"LANCEREST_RECONCILE"`
	Engine     engineFlags   `embed:""`
	databases  `embed:""`
	Limits     limits    `embed:"" prefix:"limits-" envprefix:"LANCEREST_LIMITS_"`
	Pool       statePool `embed:"" prefix:"state-" envprefix:"LANCEREST_STATE_"`
	OTLP       otlp      `embed:"" prefix:"otlp-" envprefix:"OTEL_EXPORTER_OTLP_"`
}

// roots are the flags of where tables live.
type roots struct {
	Root        string   `help:"Where new tables go: a directory or a URI such as s3://BUCKET/PREFIX. The default is what --config says, or else tables inside the data directory." env:"LANCEREST_ROOT" placeholder:"ROOT"`
	Allow       []string `help:"Further root in which tables may be registered or declared, and those of an earlier --root go on; may be repeated." env:"LANCEREST_ALLOW" placeholder:"ROOT"`
	Credentials string   `help:"What clients are given to reach the tables under --root by themselves: none, client (where storage is, no keys), static (the server's own keys) or vend (temporary keys for one table). The default is what --config says, or client for an object store." enum:",none,client,static,vend" default:"" env:"LANCEREST_CREDENTIALS"`
	STSRoleARN  string   `help:"Role that is assumed for the keys of --credentials vend, which it implies." name:"sts-role-arn" env:"LANCEREST_STS_ROLE_ARN" placeholder:"ARN"`
}

// statePool are the flags of the database of the state.
type statePool struct {
	Connections      int           `help:"Connections to the database of --state." default:"24" env:"CONNECTIONS"`
	StatementTimeout time.Duration `help:"Time after which the database gives up on a statement." default:"30s" env:"STATEMENT_TIMEOUT"`
	LockTimeout      time.Duration `help:"Time after which a statement no longer waits for another transaction." default:"5s" env:"LOCK_TIMEOUT"`
	SlowStatement    time.Duration `help:"Time from which a statement is logged, with the operation or job that it was for." default:"1s" env:"SLOW_STATEMENT"`
}

// otlp are the flags of the collector of traces. OpenTelemetry's other variables (OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER and so
// on) are read by its library.
type otlp struct {
	Endpoint       string `help:"Send traces to this OpenTelemetry collector, as OTLP over HTTP; /v1/traces is added. Without one there are no traces." env:"ENDPOINT" placeholder:"URL"`
	TracesEndpoint string `help:"The same with the whole URL; it wins." env:"TRACES_ENDPOINT" placeholder:"URL"`
}

// url is where traces are posted, "" for no traces.
func (o otlp) url() string {
	if o.TracesEndpoint != "" || o.Endpoint == "" {
		return o.TracesEndpoint
	}
	return strings.TrimSuffix(o.Endpoint, "/") + "/v1/traces"
}

// Validate refuses values that would make no server, before anything is opened.
func (s *serveCommand) Validate() error {
	if s.StagedKeep <= 0 {
		return errors.New("--staged-keep must be above 0")
	}
	if s.Reconcile < 0 {
		return errors.New("--reconcile must be 0s or above")
	}
	return s.Limits.check()
}

// config is the server that the flags describe.
func (s *serveCommand) config() app.Config {
	c := app.Config{
		Data: s.Data, State: s.State, ConfigFile: s.Config, Root: s.Root, Allow: s.Allow, Credentials: s.Credentials, STSRoleARN: s.STSRoleARN, Listen: s.Listen, Insecure: s.Insecure, Version: version(), StagedKeep: s.StagedKeep, Traces: s.OTLP.url(),
	}
	c.StatePool = app.StatePool{
		MaxConns: s.Pool.Connections, StatementTimeout: s.Pool.StatementTimeout, LockTimeout: s.Pool.LockTimeout, SlowStatement: s.Pool.SlowStatement,
	}
	if c.Reconcile = s.Reconcile; c.Reconcile == 0 {
		c.Reconcile = -1 // never
	}
	c.Engine, c.Databases = s.Engine.config(), app.Databases(s.Databases)
	s.Limits.apply(&c)
	return c
}

// Run serves until the process is told to stop.
func (s *serveCommand) Run(ctx context.Context) error {
	growHeap()
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return err
	}
	config := s.config()
	logger, flush := app.LogTo(os.Stderr, level)
	config.Logger = logger
	a, err := app.New(ctx, config)
	if err != nil {
		return err
	}
	fmt.Printf("lancerest %s listening on %s; tables live under %s\n", version(), a.URL(), a.Root())
	fmt.Printf("connect from Python: lancedb.connect_namespace(\"rest\", {\"uri\": %q})\n", a.URL())
	if where := a.State(); where != "" {
		fmt.Println("state in " + where + ", which other servers may share")
	}
	return errors.Join(a.Run(ctx), a.Close(), flush())
}
