package internal_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// layer says what the packages of a folder may import beside the standard library.
type layer struct {
	own     []string // folders of this repository
	outside []string // modules, or packages of them
}

// layers is the import table: arrows point down. A folder that is missing here may import nothing and fails; add its row with
// its package. Only app imports implementations.
func layers() map[string]layer {
	const (
		protobuf = "google.golang.org/protobuf"
		cmp      = "github.com/google/go-cmp"
		uuid     = "github.com/google/uuid"
		syncing  = "golang.org/x/sync"
		unix     = "golang.org/x/sys"
		aws      = "github.com/aws/aws-sdk-go-v2"
		google   = "cloud.google.com/go"
		azure    = "github.com/Azure/azure-sdk-for-go/sdk"
		metrics  = "github.com/prometheus/client_golang"
		traces   = "go.opentelemetry.io" // the library, and in tests the messages that a collector reads
	)
	return map[string]layer{
		// The edges.
		"cmd/lancerest":      {own: []string{"internal/app", "internal/catalog", "internal/check", "internal/config", "internal/importer"}, outside: []string{"github.com/alecthomas/kong"}},
		"internal/app":       {own: []string{"api", "client", "internal", "workers/lance"}},
		"internal/config":    {own: []string{"internal/access", "internal/lance"}, outside: []string{"github.com/pelletier/go-toml/v2"}},
		"internal/httpapi":   {own: []string{"api", "internal/auth", "internal/catalog", "internal/engine", "internal/lance", "internal/openapi", "internal/store", "internal/telemetry"}, outside: []string{uuid, metrics}},
		"internal/importer":  {own: []string{"api", "internal/lance", "internal/objstore"}, outside: []string{syncing}},
		"internal/openapi":   {own: []string{"api"}, outside: []string{"github.com/swaggest"}},
		"internal/telemetry": {outside: []string{metrics, traces}},
		"client":             {own: []string{"api"}},
		// The rules.
		"internal/catalog":       {own: []string{"api", "internal/access", "internal/auth", "internal/check", "internal/commit", "internal/engine", "internal/lance", "internal/memory", "internal/objstore", "internal/place", "internal/state", "internal/store"}, outside: []string{uuid, syncing}},
		"internal/check":         {own: []string{"api", "internal/commit/chain", "internal/commit/finish", "internal/lance", "internal/objstore", "internal/place", "internal/state", "internal/store"}},
		"internal/commit":        {own: []string{"api", "internal/auth", "internal/commit/chain", "internal/commit/finish", "internal/lance", "internal/objstore", "internal/place", "internal/state", "internal/store"}, outside: []string{uuid, syncing}},
		"internal/commit/chain":  {own: []string{"api", "internal/commit/finish", "internal/lance", "internal/memory", "internal/objstore", "internal/place", "internal/state", "internal/store"}, outside: []string{syncing}},
		"internal/commit/finish": {own: []string{"api", "internal/lance", "internal/objstore", "internal/place", "internal/state", "internal/store"}, outside: []string{syncing}},
		"internal/jobs":          {own: []string{"internal/store"}, outside: []string{syncing}},
		"internal/memory":        {own: []string{"internal/lance"}},
		"internal/place":         {own: []string{"api", "internal/access", "internal/lance", "internal/objstore", "internal/store"}, outside: []string{syncing}},
		"internal/state":         {own: []string{"api", "internal/lance", "internal/store"}},
		// The contracts, and under each its implementations and its suite.
		"internal/access":                   {own: []string{"internal/lance"}, outside: []string{syncing}},
		"internal/access/accesstest":        {own: []string{"internal/access", "internal/lance", "internal/objstore"}},
		"internal/access/aws":               {own: []string{"internal/access", "internal/lance"}, outside: []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"}},
		"internal/access/azure":             {own: []string{"internal/access", "internal/lance"}, outside: []string{azure}},
		"internal/access/gcp":               {own: []string{"internal/access", "internal/lance"}, outside: []string{google}},
		"internal/auth":                     {own: []string{"api"}},
		"internal/engine":                   {own: []string{"api"}},
		"internal/engine/enginetest":        {own: []string{"api", "internal/engine"}, outside: []string{cmp}},
		"internal/engine/durable":           {own: []string{"api", "internal/auth", "internal/catalog", "internal/engine", "internal/jobs", "internal/lance", "internal/store"}},
		"internal/engine/worker":            {own: []string{"api", "internal/auth", "internal/engine", "internal/lockfile"}},
		"internal/store":                    {own: []string{"internal/lance"}},
		"internal/store/sqlstore":           {own: []string{"internal/lance", "internal/lockfile", "internal/store"}, outside: []string{"github.com/ncruces/go-sqlite3", "github.com/jackc/pgx/v5", uuid, unix}},
		"internal/store/sqlstore/dumpfile":  {},
		"internal/store/sqlstore/pgtest":    {outside: []string{"github.com/jackc/pgx/v5"}},
		"internal/store/sqlstore/turns":     {own: []string{"internal/store"}, outside: []string{syncing}},
		"internal/store/storetest":          {own: []string{"internal/lance", "internal/store"}, outside: []string{cmp}},
		"internal/lockfile":                 {outside: []string{unix}},
		"internal/objstore":                 {},
		"internal/objstore/azure":           {own: []string{"internal/objstore"}, outside: []string{azure, uuid, syncing}},
		"internal/objstore/azure/azuretest": {own: []string{"internal/proctest"}, outside: []string{azure}},
		"internal/objstore/gcs":             {own: []string{"internal/objstore"}, outside: []string{google, "github.com/googleapis/gax-go", "google.golang.org/api", uuid, syncing}},
		"internal/objstore/gcs/gcstest":     {own: []string{"internal/proctest"}},
		"internal/objstore/alone":           {own: []string{"internal/objstore"}},
		"internal/objstore/local":           {own: []string{"internal/objstore"}, outside: []string{uuid, unix}},
		"internal/objstore/mem":             {own: []string{"internal/objstore"}},
		"internal/objstore/objtest":         {own: []string{"internal/objstore"}, outside: []string{cmp}},
		"internal/objstore/s3":              {own: []string{"internal/objstore"}, outside: []string{aws, syncing}},
		"internal/objstore/s3/s3test":       {own: []string{"internal/proctest"}, outside: []string{aws}},
		// The words.
		"api":                      {},
		"internal/lance":           {outside: []string{protobuf}},
		"internal/lance/lancetest": {own: []string{"internal/lance"}, outside: []string{protobuf}},
		"internal/lance/schema":    {own: []string{"api", "internal/lance"}},
		"workers/lance":            {},
		// Measuring and testing from outside.
		"bench":                      {own: []string{"api", "client", "internal/app", "internal/lance", "internal/store"}, outside: []string{uuid, unix, protobuf}},
		"internal/proctest":          {},
		"test/withpostgres":          {own: []string{"internal/store/sqlstore/pgtest"}},
		"test/withazure":             {own: []string{"internal/objstore/azure/azuretest"}},
		"test/withgcs":               {own: []string{"internal/objstore/gcs/gcstest"}},
		"test/withs3":                {own: []string{"internal/objstore/s3/s3test"}},
		"test/s3bench":               {own: []string{"api", "client", "internal/lance", "internal/objstore", "internal/proctest"}, outside: []string{uuid, syncing}},
		"test/model":                 {},
		"test/model/cmd/commitmodel": {own: []string{"test/model"}},
		"test/wire":                  {},
		"test/faults":                {own: []string{"api", "client"}},
	}
}

// imports holds every package to the import table.
func imports(code *tree) []finding {
	return code.find(func(f file) []finding {
		if f.test {
			return nil
		}
		row, ok := layers()[f.dir]
		if !ok {
			return breaks("import", f.dir, "the folder has no row in the import table: say there what it may import")
		}
		var found []finding
		for _, p := range importsOf(f) {
			own, isOwn := strings.CutPrefix(p, module)
			if standard(p) || isOwn && within(own, row.own) || !isOwn && within(p, row.outside) {
				continue
			}
			found = append(found, breaks("import", named(f, p), "%s may not import %s: see the import table", f.dir, p)...)
		}
		return found
	})
}

// owners holds some packages of the standard library, and what is for tests, to the folders that they are for.
func owners(code *tree) []finding {
	owned := map[string][]string{
		"net/http": {"internal/httpapi", "internal/app", "client", "bench", "test/s3bench", "internal/access/azure", "internal/access/gcp", "internal/engine/worker", "internal/objstore/azure", "internal/objstore/azure/azuretest", "internal/objstore/gcs", "internal/objstore/gcs/gcstest", "internal/objstore/s3", "internal/objstore/s3/s3test"},
		"log/slog": {"internal/httpapi", "internal/app", "internal/jobs", "internal/engine/worker", "internal/engine/durable", "cmd/lancerest"},
		"log":      {},
		// What cannot be seen from outside must be testable without a test double: so nothing is compiled for tests alone.
		"testing": {"internal/store/storetest", "internal/store/sqlstore/pgtest", "internal/objstore/objtest", "internal/access/accesstest", "internal/engine/enginetest", "internal/objstore/s3/s3test", "internal/objstore/gcs/gcstest", "internal/objstore/azure/azuretest", "internal/lance/lancetest"},
	}
	return code.find(func(f file) []finding {
		var found []finding
		for _, p := range importsOf(f) {
			folders, ok := owned[p]
			if ok && !f.test && !slices.Contains(folders, f.dir) {
				found = append(found, breaks("owner", named(f, p), "%s is for %s", p, strings.Join(folders, ", "))...)
			}
			if own, isOwn := strings.CutPrefix(p, module); isOwn && !f.test && !f.suite && !strings.HasPrefix(f.dir, "test/") && strings.HasSuffix(own, "test") {
				found = append(found, breaks("owner", named(f, p), "%s is for tests", own)...)
			}
		}
		return found
	})
}

// testImports holds tests to go-cmp and the few tools that find what a table of cases cannot, and the black-box suite to the outside.
func testImports(code *tree) []finding {
	tools := []string{"github.com/google/go-cmp", "pgregory.net/rapid", "github.com/anishathalye/porcupine", "google.golang.org/protobuf", "github.com/google/uuid", "golang.org/x/sync", "golang.org/x/sys",
		"cel.dev/cel-go", // the language that conditions of Google's are in
	}
	return code.find(func(f file) []finding {
		if !f.test {
			return nil
		}
		var found []finding
		for _, p := range importsOf(f) {
			own := strings.HasPrefix(p, module)
			if !standard(p) && !own && !within(p, tools) && !within(p, layers()[f.dir].outside) {
				found = append(found, breaks("test import", named(f, p), "tests use the standard library and %s", strings.Join(tools, ", "))...)
			}
			if own && f.dir == "test/wire" {
				found = append(found, breaks("test import", named(f, p), "the wire suite knows the server by its address alone")...)
			}
		}
		return found
	})
}

// maxDependencies bounds the libraries that the code imports.
const maxDependencies = 25

// library is the library that a module belongs to: some come as many modules.
func library(mod string) string {
	for _, many := range []string{"github.com/aws", "github.com/Azure/azure-sdk-for-go", "cloud.google.com/go", "go.opentelemetry.io", "github.com/swaggest"} {
		if mod == many || strings.HasPrefix(mod, many+"/") {
			return many
		}
	}
	return mod
}

// dependencies counts the libraries of go.mod that the code imports.
func dependencies(code *tree) []finding {
	text, err := os.ReadFile(filepath.Join(code.root, "go.mod"))
	if err != nil {
		return breaks("dependencies", "go.mod", "%v", err)
	}
	direct := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) < 2 || !strings.Contains(fields[0], ".") {
			continue
		}
		for _, f := range code.files {
			if slices.ContainsFunc(importsOf(f), func(p string) bool { return within(p, fields[:1]) }) {
				direct[library(fields[0])] = true
			}
		}
	}
	if len(direct) > maxDependencies {
		return breaks("dependencies", "go.mod", "the code imports %d libraries, and may import %d", len(direct), maxDependencies)
	}
	if len(direct) == 0 {
		return breaks("dependencies", "go.mod", "no module found: the rule reads go.mod wrongly")
	}
	return nil
}
