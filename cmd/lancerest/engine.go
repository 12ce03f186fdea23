package main

import (
	"context"
	"fmt"
	"os"

	"github.com/lancerest/lancerest/internal/app"
)

// engineFlags are the flags of serve that say who performs the operations on data.
type engineFlags struct {
	Kind    string   `help:"Who reads and writes data: auto (worker processes of this server, from the first request that needs them on; they need Python 3.10 or newer), off, or the addresses of workers that are run elsewhere, separated by commas (unix:PATH or HOST:PORT)." name:"engine" default:"auto" env:"LANCEREST_ENGINE" placeholder:"auto|off|ADDRESS"`
	Python  string   `help:"Python that has the engine's libraries. The default is an environment of the engine's own in the data directory, else python3 where that has them; the first is made on first use where neither is there." name:"engine-python" env:"LANCEREST_ENGINE_PYTHON" placeholder:"PYTHON"`
	Workers int      `help:"Worker processes; 0 is one for each processor." name:"engine-workers" default:"0" env:"LANCEREST_ENGINE_WORKERS"`
	Memory  byteSize `help:"Memory from which a worker is replaced by a new one." name:"engine-memory" default:"4GiB" env:"LANCEREST_ENGINE_MEMORY"`
	URL     string   `help:"Where workers that are run elsewhere reach this server." name:"engine-catalog-url" env:"LANCEREST_ENGINE_CATALOG_URL" placeholder:"URL"`
}

// databases is a flag that says what a database is.
type databases struct {
	Databases string `help:"What the database means that LanceDB's SDKs name (db://NAME): one (nothing; the server is one database) or namespace (a namespace of that name, made on first use)." enum:"one,namespace" default:"one" env:"LANCEREST_DATABASES"`
}

// engineSecret is the variable of what workers that are run elsewhere want to be shown.
const engineSecret = "LANCEREST_WORKER_SECRET"

// config is the engine that the flags describe.
func (e engineFlags) config() app.Engine {
	return app.Engine{Kind: e.Kind, Python: e.Python, Workers: e.Workers, Memory: int64(e.Memory), URL: e.URL, Secret: os.Getenv(engineSecret)}
}

type engineCommand struct {
	Install engineInstallCommand `cmd:"" help:"Make the Python environment of the engine's workers, which --engine auto uses."`
}

type engineInstallCommand struct {
	Data   string `help:"Directory of the catalog's state, as given to serve." default:"./lancerest-data" env:"LANCEREST_DATA" placeholder:"DIR"`
	Python string `help:"Python 3.10 or newer to make it with." default:"python3" placeholder:"PYTHON"`
}

// Run makes the environment, and says where it is.
func (i *engineInstallCommand) Run(ctx context.Context) error {
	python, err := app.InstallEngine(ctx, i.Data, i.Python, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Println("the engine's workers run with " + python)
	return nil
}
