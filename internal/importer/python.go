package importer

import (
	"bytes"
	"context"
	_ "embed" // for the program below
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

//go:embed rows.py
var rowsProgram string

// withoutPylance is the exit code of the program where it finds no pylance.
const withoutPylance = 3

// readRows reads the rows of a directory catalog's table, which lies in a directory of this machine.
func readRows(ctx context.Context, python, dir string) ([]row, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", rowsProgram, dir)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound) || err != nil && !errors.As(err, &exit):
		return nil, fmt.Errorf("its table is read by pylance, and there is no Python to run: name one that has pylance with --python: %w", err)
	case err != nil && exit.ExitCode() == withoutPylance:
		return nil, fmt.Errorf("its table is read by pylance, which %s does not have (%s): install it with %[1]s -m pip install pylance, or name another Python with --python", python, lastLine(complaint.String()))
	case err != nil:
		return nil, fmt.Errorf("pylance could not read its table: %w: %s", err, lastLine(complaint.String()))
	}
	var rows []row
	for d := json.NewDecoder(&out); ; {
		var r row
		err := d.Decode(&r)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("what pylance read of its table cannot be understood: %w", err)
		}
		rows = append(rows, r)
	}
}

// lastLine is where a Python program says what went wrong.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
