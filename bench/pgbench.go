package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// statements has a server make the schema and the first tables, and returns what pgbench is to run: the statements that another server logs
// for one version/create, transaction by transaction.
func (r *stateResult) statements(ctx context.Context, binary, url, dir string) (string, error) {
	p, address, err := start(stateServer(binary, url, dir), dir)
	if err != nil {
		return "", err
	}
	last, err := newStateTarget("a first server", address, 1, r.options, p).prepareTables()
	p.stop()
	if err != nil {
		return "", err
	}
	if p, address, err = start(stateServer(binary, url, dir, "--state-slow-statement", "1ns"), dir); err != nil {
		return "", err
	}
	err = newStateTarget("a second server", address, 1, r.options, p).commit(last, 2)
	p.stop() // what it has logged is in the file
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		return "", err
	}
	logged, err := statementsOf("CreateTableVersion", string(text))
	if err != nil {
		return "", err
	}
	r.note("pgbench runs the %d statements that the server sends in %d round trips for one version/create, each by itself", statementCount(logged), len(logged))
	return scriptOf(logged)
}

// statementCount counts statements, of which several may travel together.
func statementCount(logged []string) int {
	n := 0
	for _, sql := range logged {
		n += len(strings.Split(sql, "; "))
	}
	return n
}

// slowStatement is a line of the server's log.
var slowStatement = regexp.MustCompile(`msg="slow statement" operation=(\S+) took=\S+ times=\d+ sql=(.*)`)

// statementsOf returns the statements of an operation in order.
func statementsOf(operation, log string) ([]string, error) {
	var all []string
	for _, m := range slowStatement.FindAllStringSubmatch(log, -1) {
		if m[1] != operation {
			continue
		}
		sql := m[2]
		if strings.HasPrefix(sql, `"`) {
			var err error
			if sql, err = strconv.Unquote(sql); err != nil {
				return nil, fmt.Errorf("log line %s: %w", m[0], err)
			}
		}
		all = append(all, sql)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the server has logged no statement of %s", operation)
	}
	return all, nil
}

var (
	parameter  = regexp.MustCompile(`\$(\d+)`)
	comparison = regexp.MustCompile(`(\w+) (?:=|>=|<=|>|<) (?:COALESCE\()?\$(\d+)`)
	insertion  = regexp.MustCompile(`^INSERT INTO \w+ \(([^)]*)\) VALUES \(([^)]*)\)`)
)

// scriptOf turns logged statements into a script of pgbench that does the same to the table of the client's number: each parameter gets a
// value by the column that it is compared with or put into.
func scriptOf(logged []string) (string, error) {
	lines := []string{`\set txn random(1000000000000000000, 9000000000000000000)`}
	open := ""
	end := func(with string) {
		if open != "" {
			lines = append(lines, with+";")
		}
		open = ""
	}
	for sql := range strings.SplitSeq(strings.Join(logged, "; "), "; ") {
		switch {
		case strings.HasPrefix(sql, "BEGIN"):
			end("ROLLBACK") // of what only read
			open = sql
			lines = append(lines, sql+";")
			continue
		case sql == "COMMIT":
			end("COMMIT")
			continue
		}
		text, err := withValues(sql)
		if err != nil {
			return "", err
		}
		lines = append(lines, text)
		if strings.Contains(sql, "ORDER BY version DESC") { // the head
			lines = append(lines, `\set next :head_version + 1`)
		}
	}
	end("ROLLBACK")
	lines = append(lines, `\set next :next + 1`)
	return strings.Join(lines, "\n") + "\n", nil
}

// withValues puts pgbench's values in place of a statement's parameters.
func withValues(sql string) (string, error) {
	columns := map[string]string{} // by the number of the parameter
	for _, m := range comparison.FindAllStringSubmatch(sql, -1) {
		columns[m[2]] = m[1]
	}
	if m := insertion.FindStringSubmatch(sql); m != nil {
		names := strings.Split(m[1], ",")
		for i, value := range strings.Split(m[2], ",") {
			columns[strings.Trim(value, " $")] = strings.TrimSpace(names[i])
		}
	}
	var missing []error
	text := parameter.ReplaceAllStringFunc(sql, func(p string) string {
		column, ok := columns[p[1:]]
		if !ok {
			missing = append(missing, fmt.Errorf("no column belongs to parameter %s of %s", p, sql))
		}
		return valueOf(column, sql)
	})
	switch {
	case len(missing) > 0:
		return "", errors.Join(missing...)
	case strings.Contains(sql, "ORDER BY version DESC"):
		return text + ` \gset head_`, nil
	case strings.HasPrefix(sql, "SELECT o.id"): // the table
		return text + ` \gset`, nil
	}
	return text + ";", nil
}

// valueOf is what pgbench gives for a column.
func valueOf(column, sql string) string {
	switch column {
	case "path":
		return "'" + namespace + "'"
	case "name":
		return ":client_id"
	case "table_id":
		return ":id"
	case "branch", "context", "status", "principal", "metadata", "properties":
		return "''"
	case "version":
		return ":next"
	case "txn":
		return ":txn"
	case "id":
		if strings.Contains(sql, "transactions") {
			return ":txn"
		}
		return ":id"
	case "state":
		if strings.HasPrefix(sql, "UPDATE") {
			return "1"
		}
		return "0"
	case "digest":
		return `:digest`
	case "entries":
		if strings.HasPrefix(sql, "UPDATE") {
			return "NULL" // they stay
		}
		return ":entries"
	case "staged", "e_tag":
		return ":" + column
	}
	return "'0'"
}

// pgbench runs the script for as long as a cell takes.
func (d *database) pgbench(ctx context.Context, o options) (cell, error) {
	seconds := max(1, int(o.duration.Seconds()))
	variables := map[string]string{
		"next": "0", "digest": `\x` + strings.Repeat("5a", 32), "staged": "18446744073709551612.manifest-0a0b0c0d-0000-4000-8000-00000000000a",
		"e_tag": `"3039-6543210fedcba-2ab"`, "entries": `[{"kind":1,"version":2,"staged":"` + strings.Repeat("x", 300) + `"}]`,
	}
	args := []string{"--no-vacuum", "--protocol=prepared", "--max-tries=1000", "-T", strconv.Itoa(seconds), "-c", strconv.Itoa(o.clients), "-j", "2", "-f", d.script}
	for name, value := range variables {
		args = append(args, "-D", name+"="+value)
	}
	out, err := exec.CommandContext(ctx, "pgbench", append(args, d.url)...).CombinedOutput()
	if err != nil {
		return cell{}, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	m := regexp.MustCompile(`tps = ([0-9.]+)`).FindSubmatch(out)
	if m == nil {
		return cell{}, fmt.Errorf("pgbench did not say how fast it was:\n%s", out)
	}
	rate, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return cell{}, err
	}
	elapsed := time.Duration(seconds) * time.Second
	return cell{requests: int(rate * elapsed.Seconds()), elapsed: elapsed}, nil
}
