package proctest

import (
	"runtime"
	"syscall"
)

func start(p *Process, death syscall.Signal) error {
	if p.cmd.SysProcAttr == nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	p.cmd.SysProcAttr.Pdeathsig = death
	started := make(chan error)
	go func() {
		// The signal comes when the thread ends that started the server, so that this one stays as long as it does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.wait()
		}
	}()
	return <-started
}
