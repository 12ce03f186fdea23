//go:build !linux

package sqlstore

import (
	"net"
	"time"
)

// boundUnacknowledged leaves it to the system when a connection breaks that is not acknowledged.
func boundUnacknowledged(*net.TCPConn, time.Duration) error { return nil }
