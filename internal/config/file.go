// Package config holds what may be said about roots: the file that says it, and the flags that say less. Everything is checked here,
// whole, before anything is opened.
//
// What does not live here: flags as such (cmd/lancerest), and the opening of roots (app).
package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// File is a configuration file, in TOML.
type File struct {
	Default string `toml:"default" help:"Location of the root where new tables go. The default is the first."`
	Roots   []Root `toml:"root" help:"A root, under [[root]]; as many as there are."`
}

// Load reads a configuration file and checks it whole. The error says everything that is wrong with it, with the line where that can be
// told, and never shows what a secret is.
func Load(path string) (File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return File{}, fmt.Errorf("configuration: %w", err)
	}
	file, err := parse(text)
	if err == nil {
		err = file.check()
	}
	if err != nil {
		return File{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	return file, nil
}

// parse decodes a file and refuses keys that nobody reads.
func parse(text []byte) (File, error) {
	var file File
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	err := decoder.Decode(&file)
	var unknown *toml.StrictMissingError
	var wrong *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		var errs []error
		for _, e := range unknown.Errors {
			row, _ := e.Position()
			errs = append(errs, fmt.Errorf("line %d: there is no setting %q", row, strings.Join(e.Key(), ".")))
		}
		return File{}, errors.Join(errs...)
	case errors.As(err, &wrong):
		row, _ := wrong.Position() // the library's longer text shows the line, which may hold a secret
		return File{}, fmt.Errorf("line %d: %w", row, wrong)
	}
	return file, err
}

// check says everything that is wrong with a file.
func (f File) check() error {
	if len(f.Roots) == 0 {
		return errors.New("there is no root: begin one with [[root]] and give its location")
	}
	var errs []error
	seen := map[string]bool{}
	for i, r := range f.Roots {
		if err := r.check(); err != nil {
			errs = append(errs, fmt.Errorf("root %d: %w", i+1, err))
			continue
		}
		if name := r.canonical(); seen[name] {
			errs = append(errs, fmt.Errorf("root %d: %s was said before: one root has one set of settings", i+1, name))
		} else {
			seen[name] = true
		}
	}
	if len(errs) == 0 && f.Default != "" {
		if !seen[(Root{Location: f.Default}).canonical()] {
			errs = append(errs, fmt.Errorf("default %q: it is none of the roots", f.Default))
		}
	}
	return errors.Join(errs...)
}
