package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// update writes the generated document instead of comparing with it.
var update = flag.Bool("update", false, "write docs/configuration.md anew")

// TestConfigurationDocument holds docs/configuration.md to the flags. It is in the package itself: a command exports nothing.
func TestConfigurationDocument(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&commands{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString(`# Configuration

Flags win over environment variables, and those over defaults. There is no configuration file. Written by
` + "`go generate ./cmd/lancerest`" + ` from the commands' structs; a test holds it to them.
`)
	for _, command := range parser.Model.Children {
		fmt.Fprintf(&text, "\n## `lancerest %s`\n\n%s\n", command.Name, command.Help)
		if len(command.Flags) > 0 {
			text.WriteString("\n| Flag | Environment | Default | Says |\n|---|---|---|---|\n")
		}
		for _, f := range command.Flags {
			fmt.Fprintf(&text, "| `--%s` | %s | %s | %s |\n", f.Name, code(strings.Join(f.Envs, ", ")), code(f.Default), f.Help)
		}
	}
	const path = "../../docs/configuration.md"
	if *update {
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text.String(), string(got)); diff != "" {
		t.Errorf("%s is not what it would be now; `go generate ./...` writes it (-want +got):\n%s", path, diff)
	}
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
