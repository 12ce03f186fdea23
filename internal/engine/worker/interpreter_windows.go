package worker

import "path/filepath"

// interpreter is the Python of an environment.
func interpreter(dir string) string { return filepath.Join(dir, "Scripts", "python.exe") }
