// Command commitmodel explores the model of the commit protocol and prints what it found: README.md of package model.
// With -all it explores every scenario without every rule instead, some minutes long, and prints which promise breaks where.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/lancerest/lancerest/test/model"
)

func main() {
	all := flag.Bool("all", false, "explore every scenario without every rule (takes minutes)")
	flag.Parse()
	if *all {
		matrix()
		return
	}
	rep := model.Run()
	fmt.Print(rep.Markdown())
	for _, r := range rep.Whole {
		if r.Broken != model.Kept {
			fmt.Fprintf(os.Stderr, "scenario %s breaks %s\n", r.Scenario.Name, r.Broken)
			for _, line := range r.Trace {
				fmt.Fprintln(os.Stderr, "  "+line)
			}
			defer os.Exit(1)
		}
	}
}

// matrix prints one line a rule and scenario.
func matrix() {
	for _, rule := range model.Rules() {
		for _, sc := range model.Scenarios() {
			r := model.Explore(sc, rule)
			fmt.Printf("%-27s %-12s %8d states  %s\n", rule, sc.Name, r.States, r.Broken)
		}
	}
}
