// Package proctest starts the servers of others that tests run against, and ends them with the process that started them.
//
// What does not live here: how a particular server is set up; see the packages that use this one.
package proctest

import (
	"net"
	"os/exec"
	"syscall"
)

// Process is a server that runs. Its methods are safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of Wait; set before exited is closed
}

// Start starts a server. Where the system can do that (Linux) the server is sent the signal death when this process ends, however it ends.
func Start(cmd *exec.Cmd, death syscall.Signal) (*Process, error) {
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	if err := start(p, death); err != nil {
		return nil, err
	}
	return p, nil
}

// wait notes the end of the server.
func (p *Process) wait() {
	p.err = p.cmd.Wait()
	close(p.exited)
}

// Exited is closed when the server has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err is how the server ended, once it has: nil for exit code 0.
func (p *Process) Err() error { return p.err }

// Kill ends the server as a loss of power would, and returns when it has ended. It may be called twice.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it fails for one that has ended
	<-p.exited
}

// FreePorts returns n different ports of the loopback address on which nothing listens now. Another process may take one before it
// is used: whoever starts a server tries again with other ports.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
