//go:build !windows

package worker

import (
	"os"
	"os/exec"
	"path/filepath"
)

// interpreter is the Python of an environment.
func interpreter(dir string) string { return filepath.Join(dir, "bin", "python") }

// inherit hands a program a file that is open.
func inherit(cmd *exec.Cmd, f *os.File) { cmd.ExtraFiles = append(cmd.ExtraFiles, f) }
