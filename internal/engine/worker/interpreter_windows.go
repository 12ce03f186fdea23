package worker

import (
	"os"
	"os/exec"
	"path/filepath"
)

// interpreter is the Python of an environment.
func interpreter(dir string) string { return filepath.Join(dir, "Scripts", "python.exe") }

// inherit does nothing: programs are not handed files here.
func inherit(*exec.Cmd, *os.File) {}
