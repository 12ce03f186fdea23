package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// result is what a run gave.
type result struct {
	options options
	begun   time.Time
	parts   []measured
}

// The goals: a commit may take so much longer than its requests, and the large batch so many times as long as one of a single table.
const (
	goalBeyond = 2 * time.Millisecond
	goalTimes  = 3.0
)

// markdown is the result as a table.
func (r *result) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| delay before a request | three requests, one after another | `version/create` | longer by | goal | `batch-create` of 1 | of %d | ratio | goal | its %d requests alone |\n", r.options.tables, 3*r.options.tables)
	b.WriteString("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, h := range r.parts {
		beyond := h.create.at(0.5) - h.requests.at(0.5)
		ratio := float64(h.several.at(0.5)) / float64(h.one.at(0.5))
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %.1fx | %s | %s |\n", h.delay, shown(h.requests), shown(h.create), millis(beyond), goal{"≤ " + millis(goalBeyond), beyond <= goalBeyond},
			shown(h.one), shown(h.several), ratio, goal{fmt.Sprintf("≤ %.0fx", goalTimes), ratio <= goalTimes}, shown(h.flood))
	}
	fmt.Fprintf(&b, "\n* %s, %d cores; %d rounds, one client, medians (the tenth and the ninetieth of a hundred); S3 server, server and client share the machine\n",
		r.begun.UTC().Format("2006-01-02 15:04 UTC"), runtime.NumCPU(), r.options.rounds)
	return b.String()
}

func shown(t times) string {
	return fmt.Sprintf("%s (%s to %s)", millis(t.at(0.5)), millis(t.at(0.1)), millis(t.at(0.9)))
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// goal is a goal and whether it was reached.
type goal struct {
	text    string
	reached bool
}

// String is how it stands in the table.
func (g goal) String() string {
	if g.reached {
		return g.text
	}
	return g.text + " (missed)"
}

// The marks in docs/performance.md between which the result of a run stands.
const (
	beginMark = "<!-- written by make bench-update, S3 -->\n"
	endMark   = "<!-- end of what make bench-update writes, S3 -->\n"
	document  = "docs/performance.md"
)

// writeDocument puts the result into the document.
func (r *result) writeDocument() error {
	old, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(old), beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return errors.New(document + " lacks the marks between which the result stands")
	}
	return os.WriteFile(document, []byte(before+beginMark+"\n"+r.markdown()+"\n"+endMark+after), 0o644)
}
