//go:build !linux

package proctest

import "syscall"

func start(p *Process, _ syscall.Signal) error {
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go p.wait()
	return nil
}
