package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/config"
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

Flags win over environment variables, those over the configuration file (at the end), and that over defaults. Written by
` + "`go generate ./cmd/lancerest`" + ` from the structs that are read; a test holds it to them.
`)
	for _, command := range parser.Model.Leaves(true) {
		fmt.Fprintf(&text, "\n## `lancerest %s`\n\n%s\n", command.Path(), command.Help)
		if len(command.Flags) > 0 {
			text.WriteString("\n| Flag | Environment | Default | Says |\n|---|---|---|---|\n")
		}
		for _, f := range command.Flags {
			fmt.Fprintf(&text, "| `--%s` | %s | %s | %s |\n", f.Name, code(strings.Join(f.Envs, ", ")), code(f.Default), f.Help)
		}
	}
	text.WriteString(fileText)
	settings(&text, reflect.TypeFor[config.File](), "")
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

// fileText stands before the settings of the configuration file.
const fileText = `
## The configuration file

` + "`--config FILE`" + ` names a file in [TOML](https://toml.io). It says of any number of roots where they are, how they are reached, and what the
clients of their tables are given. All of it is checked before anything is opened: a setting that does not exist, or is for another kind of
storage, is refused with its line or its root. Secrets are never written there, only where they are: ` + "`env:NAME`" + ` for a variable of the
environment, ` + "`file:PATH`" + ` for a file.

` + "```toml" + `
default = "s3://lake/tables"            # where new tables go; without this line the first root

[[root]]
location = "s3://lake/tables"
region = "eu-central-1"
credentials = "vend"

[root.vend]
role_arn = "arn:aws:iam::123456789012:role/lancerest-tables"
duration = "1h"

[[root]]
location = "s3://archive"
endpoint = "https://s3.example.org"
access_key_id = "env:ARCHIVE_KEY_ID"
secret_access_key = "file:/run/secrets/archive-key"
credentials = "client"

[[root]]
location = "/srv/tables"
` + "```" + `

A setting with a kind of storage beside it is for that kind alone: ` + "`s3`" + ` (Amazon S3 and what speaks it), ` + "`gs`" + ` (Google Cloud Storage), ` + "`az`" + `
(Azure Blob, also as ` + "`abfss`" + `).
`

// settings writes the table of a struct's settings, then those of the structs in it.
func settings(text *strings.Builder, t reflect.Type, name string) {
	title := map[string]string{"": "At the top", "root": "Under `[[root]]`", "vend": "Under `[root.vend]`"}[name]
	fmt.Fprintf(text, "\n### %s\n\n| Setting | For | Says |\n|---|---|---|\n", title)
	var inner []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		help := f.Tag.Get("help")
		if f.Type == reflect.TypeFor[config.Secret]() {
			help += " A secret: `env:NAME` or `file:PATH`."
		}
		fmt.Fprintf(text, "| %s | %s | %s |\n", code(f.Tag.Get("toml")), strings.ReplaceAll(f.Tag.Get("for"), " ", ", "), help)
		if f.Type == reflect.TypeFor[[]config.Root]() || f.Type == reflect.TypeFor[config.Vending]() {
			inner = append(inner, f)
		}
	}
	for _, f := range inner {
		t := f.Type
		if t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		settings(text, t, f.Tag.Get("toml"))
	}
}

// TestConfigurationExample: the file in the document is one that can be used.
func TestConfigurationExample(t *testing.T) {
	dir := t.TempDir()
	_, example, _ := strings.Cut(fileText, "```toml\n")
	example, _, _ = strings.Cut(example, "```")
	key := filepath.Join(dir, "key")
	example = strings.Replace(example, "/run/secrets/archive-key", key, 1)
	t.Setenv("ARCHIVE_KEY_ID", "id")
	for name, text := range map[string]string{"config.toml": example, "key": "secret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := config.Load(filepath.Join(dir, "config.toml"))
	if err != nil || len(file.Roots) != 3 {
		t.Fatalf("%d roots, %v; want 3", len(file.Roots), err)
	}
	if secret, err := file.Roots[1].SecretAccessKey.Read(); secret != "secret" || err != nil {
		t.Errorf("secret %q, %v", secret, err)
	}
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
