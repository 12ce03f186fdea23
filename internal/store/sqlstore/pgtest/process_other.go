//go:build unix && !linux

package pgtest

import (
	"os"
	"os/exec"
)

// startBound starts a server. Here nothing ends it if this process is killed.
func startBound(cmd *exec.Cmd, exited chan<- error) (*os.Process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { exited <- cmd.Wait() }()
	return cmd.Process, nil
}
