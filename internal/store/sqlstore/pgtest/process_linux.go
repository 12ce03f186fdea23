package pgtest

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// startBound starts a server that the system ends with this process, however this process ends. exited gets what became of it.
func startBound(cmd *exec.Cmd, exited chan<- error) (*os.Process, error) {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	started := make(chan error)
	go func() {
		// The signal comes when the thread ends that started the process, so that this one stays as long as it does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			exited <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return cmd.Process, nil
}
