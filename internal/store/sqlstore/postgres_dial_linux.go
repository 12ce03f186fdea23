package sqlstore

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// boundUnacknowledged breaks a connection whose other end does not acknowledge for so long what was sent, in place of the system's quarter
// of an hour.
func boundUnacknowledged(conn *net.TCPConn, d time.Duration) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
	return errors.Join(err, failed)
}
