package main

import (
	"fmt"
	"strings"
	"time"
)

// The goals with the state in PostgreSQL: of what pgbench reaches, and how much slower many tables may be.
const (
	stateGoal = 0.60
	flatGoal  = 1.5
)

func (r *stateResult) header() []string {
	return []string{
		"operation", fmt.Sprintf("a second, %s tables", number(float64(r.options.tables))), "p50", "p99", "CPU", "pgbench", "of pgbench", "goal",
		fmt.Sprintf("a second, %s tables", number(float64(r.options.large))), "p50", "p99", "CPU", "pgbench", "of pgbench", "few : many", "goal",
	}
}

func (r *stateResult) row(l stateLine) []string {
	cells := append([]string{l.op.title()}, figures(&l.servers[0])...)
	cells = append(cells, l.beside(0)...)
	if l.pgbench[0].rate > 0 {
		cells = append(cells, "≥ "+percent(stateGoal)+reached(l.ofPgbench[0] >= stateGoal))
	} else {
		cells = append(cells, "-")
	}
	cells = append(cells, figures(&l.servers[1])...)
	cells = append(cells, l.beside(1)...)
	return append(cells, times(l.fewToMany), "≤ "+times(flatGoal)+reached(l.fewToMany <= flatGoal))
}

// beside is what pgbench gave beside a server.
func (l stateLine) beside(i int) []string {
	if l.pgbench[i].rate == 0 {
		return []string{"-", "-"}
	}
	return []string{spread(l.pgbench[i]), percent(l.ofPgbench[i])}
}

func spread(s summary) string {
	return fmt.Sprintf("%s (%s to %s)", number(s.rate), number(s.low), number(s.high))
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

func (r *stateResult) remarks() []string {
	disk := make([]string, len(r.syncs))
	for i, v := range r.syncs {
		disk[i] = number(v)
	}
	return append([]string{
		fmt.Sprintf("%s, %s; %s; PostgreSQL %s beside the server and the load generator; %d clients, %d rounds of %s an operation and server, medians (lowest to highest round)",
			r.started.UTC().Format("2006-01-02 15:04 UTC"), r.machine, r.loads, r.version, r.options.clients, r.options.rounds, r.options.duration),
		"ratios are medians over the rounds too, each of two cells that were measured right after each other",
		"CPU is the processor time of the server alone, without the database's, for one request",
		"fdatasync/s of the disk, 4 KiB appended, before each operation: " + strings.Join(disk, "; "),
	}, append(r.notes, fmt.Sprintf("the whole run took %s", r.took.Round(time.Second)))...)
}

// rows implements outcome.
func (r *stateResult) rows() [][]string {
	var rows [][]string
	for _, l := range r.lines {
		rows = append(rows, r.row(l))
	}
	return rows
}

// marks implements outcome.
func (r *stateResult) marks() (begin, end string) {
	return "<!-- written by make bench-postgres-update -->\n", "<!-- end of what make bench-postgres-update writes -->\n"
}
