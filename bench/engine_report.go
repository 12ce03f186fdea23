package main

import (
	"fmt"
	"time"
)

// The goals: how much longer a query may take than in pylance at the median, how much of its throughput and of its write speed the server has to
// reach, and how much any process may grow by a stream.
const (
	beyondGoal     = 2 * time.Millisecond
	throughputGoal = 0.80
	writeGoal      = 0.70
	grownGoal      = 300 << 20
)

// header implements outcome.
func (r *engineResult) header() []string {
	return []string{"measured", "pylance in process", "through the server", "compared", "goal", "through LanceDB's SDK"}
}

// rows implements outcome.
func (r *engineResult) rows() [][]string {
	table := r.queries.rows()
	for _, w := range r.writes {
		name := map[string]string{"append": "insert", "create": "create table"}[w.mode]
		table = append(table,
			[]string{fmt.Sprintf("%s of %d MiB: MB/s", name, w.bytes>>20), w.rate(w.pylance), w.rate(w.server), percent(w.speed), "≥ " + percent(writeGoal) + reached(w.speed >= writeGoal), "-"},
			[]string{name + ": CPU", fmt.Sprintf("%.1f s", median(w.pylanceCPU).Seconds()), fmt.Sprintf("%.1f s", median(w.serverCPU).Seconds()), "-", "-", "-"},
			[]string{name + ": a process grew by at most", "-", fmt.Sprintf("%d MiB (%s)", w.grown>>20, w.grower), "-", fmt.Sprintf("≤ %d MiB", grownGoal>>20) + reached(w.grown <= grownGoal), "-"})
	}
	for _, a := range r.alone {
		table = append(table, []string{fmt.Sprintf("`%s` without workers, %d clients: a second", a.name, engineClients), "-",
			fmt.Sprintf("%s, p50 %s, CPU %s", number(a.given.rate), millis(a.given.p50), millis(a.given.cpu)), "-", "no worker is started", "-"})
	}
	return table
}

// rows are the lines about queries.
func (q *queryResult) rows() [][]string {
	if q == nil {
		return nil
	}
	eight := fmt.Sprintf("query, %d clients: ", engineClients)
	return [][]string{
		{"query, 1 client: p50", millis(q.pylance[0].p50), millis(q.server[0].p50), signed(q.beyond), "≤ +" + millis(beyondGoal) + reached(q.beyond <= beyondGoal), millis(q.sdk[0].p50)},
		{"query, 1 client: p99", millis(q.pylance[0].p99), millis(q.server[0].p99), "-", "-", millis(q.sdk[0].p99)},
		{"query, 1 client: CPU", millis(q.pylance[0].cpu), beside(q.server[0], q.load[0]), signed(q.server[0].cpu + q.load[0] - q.pylance[0].cpu), "-", millis(q.sdk[0].cpu)},
		{eight + "a second", spread(q.pylance[1]), spread(q.server[1]), percent(q.throughput), "≥ " + percent(throughputGoal) + reached(q.throughput >= throughputGoal), spread(q.sdk[1])},
		{eight + "p50", millis(q.pylance[1].p50), millis(q.server[1].p50), "-", "-", millis(q.sdk[1].p50)},
		{eight + "p99", millis(q.pylance[1].p99), millis(q.server[1].p99), "-", "-", millis(q.sdk[1].p99)},
		{eight + "CPU", millis(q.pylance[1].cpu), beside(q.server[1], q.load[1]), signed(q.server[1].cpu + q.load[1] - q.pylance[1].cpu), "-", millis(q.sdk[1].cpu)},
	}
}

// rate is the median speed of writes and the extremes, in megabytes a second.
func (w writeResult) rate(took []time.Duration) string {
	cells := make([]cell, len(took))
	for i, t := range took {
		cells[i] = cell{requests: int(w.bytes / 1e6), elapsed: t}
	}
	return spread(summaryOf(cells, 1))
}

// beside is the processor time of a query in the server and its workers, and in the load generator.
func beside(s summary, load time.Duration) string {
	return millis(s.cpu) + " and " + millis(load) + " for the load"
}

func signed(d time.Duration) string {
	if d < 0 {
		return millis(d)
	}
	return "+" + millis(d)
}

// remarks implements outcome.
func (r *engineResult) remarks() []string {
	return []string{
		fmt.Sprintf("%s, %s; %s; %d rounds, those of queries of %s, medians (lowest to highest round); differences and percentages are medians over the rounds, each of two cells that were measured right after each other",
			r.started.UTC().Format("2006-01-02 15:04 UTC"), r.machine, r.loads, r.options.rounds, r.options.duration),
		fmt.Sprintf("%s x %d float32, IVF_PQ with 256 partitions and 16 sub-vectors, top 10, columns id and _distance, all else as by default",
			number(float64(r.options.vectors)), dimension),
		"CPU of a query is the processor time of all that works for it: pylance and its clients are one process; the server, its workers and the load generator share the same processors",
		fmt.Sprintf("the whole run took %s", r.took.Round(time.Second)),
	}
}

// marks implements outcome.
func (r *engineResult) marks() (begin, end string) {
	return "<!-- written by make bench-engine-update -->\n", "<!-- end of what make bench-engine-update writes -->\n"
}
