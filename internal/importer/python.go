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
	rows, err := decodeRows(&out)
	if err != nil {
		return nil, fmt.Errorf("what %s printed of its table cannot be understood (is it a Python with pylance?): %w", python, err)
	}
	return rows, nil
}

// decodeRows reads what the program prints. Its last line says how many rows it read: no output at all is not a table without rows.
func decodeRows(out io.Reader) ([]row, error) {
	var rows []row
	for d := json.NewDecoder(out); ; {
		var line struct {
			row
			Rows *int `json:"rows"`
		}
		switch err := d.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("it ends after %d rows without the line that ends it", len(rows))
		case err != nil:
			return nil, err
		case line.Rows == nil:
			rows = append(rows, line.row)
		case *line.Rows != len(rows) || d.More():
			return nil, fmt.Errorf("it has %d rows before its last line, which says %d, or more after it", len(rows), *line.Rows)
		default:
			return rows, nil
		}
	}
}

// lastLine is where a Python program says what went wrong.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
