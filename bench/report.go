package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// number writes a rate without false precision.
func number(v float64) string {
	switch {
	case v >= 100:
		text := fmt.Sprintf("%.0f", v)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
		return text
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

// at returns what an operation gave on the server with the label, nil where that took no part.
func (r *result) at(l line, label string) *summary {
	for i, name := range r.labels {
		if name == label {
			return &l.servers[i]
		}
	}
	return nil
}

// header and row are the same cells for both forms of the result.
func (r *result) header() []string {
	cells := []string{"operation", "a second", "p50", "p99", "CPU"}
	if r.options.reference {
		cells = append(cells, "reference", "p50", "p99", "CPU", "ratio", "goal")
	}
	if r.options.large > 0 {
		cells = append(cells, fmt.Sprintf("with %s tables", number(float64(r.options.large))), "p50", "p99", "CPU", "small : large")
	}
	if r.options.many > 0 {
		cells = append(cells, fmt.Sprintf("reference with %s tables", number(float64(r.options.many))), "p50", "p99", "CPU", "ratio to the large Lancerest")
	}
	return cells
}

func (r *result) row(l line) []string {
	own := r.at(l, lancerestLabel)
	cells := append([]string{l.op.title()}, figures(own)...)
	if ref := r.at(l, referenceLabel); ref != nil {
		cells = append(cells, figures(ref)...)
		cells = append(cells, l.ratio(own, ref)...)
	}
	if large := r.at(l, largeLabel); large != nil {
		cells = append(cells, figures(large)...)
		cells = append(cells, times(own.rate/large.rate))
		if many := r.at(l, manyLabel); many != nil {
			cells = append(cells, figures(many)...)
			cells = append(cells, l.ratio(large, many)[0])
		}
	}
	return cells
}

// ratio is how many times the reference an operation is, beside what the project asks.
func (l line) ratio(own, ref *summary) []string {
	if ref.rate == 0 {
		return []string{"-", "≥ " + number(l.op.goal) + "/s" + reached(own.rate >= l.op.goal)}
	}
	ratio := own.rate / ref.rate
	return []string{times(ratio), "≥ " + number(l.op.goal) + "x" + reached(ratio >= l.op.goal)}
}

func reached(yes bool) string {
	if yes {
		return ""
	}
	return " (missed)"
}

func times(v float64) string {
	if v >= 10 {
		return fmt.Sprintf("%.0fx", v)
	}
	return fmt.Sprintf("%.2fx", v)
}

func figures(s *summary) []string {
	if s.rate == 0 {
		return []string{s.note, "-", "-", "-"}
	}
	return []string{fmt.Sprintf("%s (%s to %s)", number(s.rate), number(s.low), number(s.high)), millis(s.p50), millis(s.p99), millis(s.cpu)}
}

// outcome is the result of a run in either of its forms: a table and what it has to be read with.
type outcome interface {
	header() []string
	rows() [][]string
	remarks() []string
	// marks stand around the place of the result in docs/performance.md.
	marks() (begin, end string)
}

func (r *result) rows() [][]string {
	var rows [][]string
	for _, l := range r.lines {
		rows = append(rows, r.row(l))
	}
	return rows
}

// text is a result for a terminal.
func text(r outcome) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(r.header(), "\t"))
	for _, cells := range r.rows() {
		fmt.Fprintln(w, strings.ReplaceAll(strings.Join(cells, "\t"), "`", ""))
	}
	_ = w.Flush() // into memory
	b.WriteString("\n")
	for _, n := range r.remarks() {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

// remarks are what the figures have to be read with.
func (r *result) remarks() []string {
	disk := make([]string, len(r.syncs))
	for i, v := range r.syncs {
		disk[i] = number(v)
	}
	remarks := []string{
		fmt.Sprintf("%s, %s; %s; %d clients, %d rounds of %s an operation and server, medians (lowest to highest round); the load generator shares the machine",
			r.started.UTC().Format("2006-01-02 15:04 UTC"), r.machine, r.loads, r.options.clients, r.options.rounds, r.options.duration),
		"CPU is the processor time of the server for one request: it depends far less than the rest on what else the machine does",
		fmt.Sprintf("%d tables, also in the reference server; fdatasync/s of the disk, 4 KiB appended, before each operation and after the last: %s",
			r.options.tables, strings.Join(disk, "; ")),
	}
	return append(append(remarks, r.notes...), fmt.Sprintf("the whole run took %s", r.took.Round(time.Second)))
}

// marks implements outcome.
func (r *result) marks() (begin, end string) {
	return "<!-- written by make bench-update -->\n", "<!-- end of what make bench-update writes -->\n"
}

// markdown is a result for the document.
func markdown(r outcome) string {
	var b strings.Builder
	header := r.header()
	fmt.Fprintf(&b, "| %s |\n|---|%s\n", strings.Join(header, " | "), strings.Repeat("---:|", len(header)-1))
	for _, cells := range r.rows() {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	b.WriteString("\n")
	for _, n := range r.remarks() {
		fmt.Fprintf(&b, "* %s\n", n)
	}
	return b.String()
}

// writeDocument puts a result into docs/performance.md.
func writeDocument(r outcome) error {
	module, err := moduleDir()
	if err != nil {
		return err
	}
	name := filepath.Join(module, "docs", "performance.md")
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	begin, end := r.marks()
	text, err := replaceBetween(string(old), begin, "\n"+markdown(r)+"\n", end)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// replaceBetween puts text between two marks of a document.
func replaceBetween(document, begin, text, end string) (string, error) {
	before, rest, begun := strings.Cut(document, begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return "", fmt.Errorf("it has lost the marks %q and %q between which the result stands", begin, end)
	}
	return before + begin + text + end + after, nil
}
