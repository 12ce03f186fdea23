// Command commitmodel explores the model of the commit protocol and prints what it found: README.md of package model.
// With -deep it goes one crash and one timeout further than the tests do.
// With -all it explores every scenario without every rule instead, some minutes long, and prints which promise breaks where.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/lancerest/lancerest/test/model"
)

func main() {
	deep := flag.Bool("deep", false, "explore every scenario with one more crash and timeout (takes minutes and gigabytes)")
	all := flag.Bool("all", false, "explore every scenario without every rule (takes minutes)")
	flag.Parse()
	if *deep {
		deepen()
		return
	}
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

// deepen prints one line a scenario.
func deepen() {
	for _, sc := range model.Scenarios() {
		r := model.Explore(sc.Deeper())
		fmt.Printf("%-12s %9d states  %s\n", sc.Name, r.States, r.Broken)
		for _, line := range r.Trace {
			fmt.Println("  " + line)
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
