package sqlstore_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lancerest/lancerest/internal/store/sqlstore"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// TestPostgresDeadPeer holds that a connection to a machine that is gone breaks within half a minute, whether something was sent or it only waits
// for an answer: a commit that nobody answers keeps its turn for as long.
func TestPostgresDeadPeer(t *testing.T) {
	t.Parallel()
	s := openPostgres(t, sqlstore.PostgresOptions{URL: pgtest.Start(t, pgtest.Options{}).URL()})
	values := map[int]int{}
	err := sqlstore.PostgresSocket(t.Context(), s, func(fd uintptr) {
		for _, option := range []int{unix.TCP_USER_TIMEOUT, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT} {
			value, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option)
			if err != nil {
				t.Error(err)
			}
			values[option] = value
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	sent, silent := values[unix.TCP_USER_TIMEOUT]/1000, values[unix.TCP_KEEPIDLE]+values[unix.TCP_KEEPCNT]*values[unix.TCP_KEEPINTVL]
	if sent < 5 || sent > 30 || silent < 5 || silent > 30 {
		t.Errorf("a dead peer is noticed after %d s where something was sent and %d s where nothing was, want 5 to 30", sent, silent)
	}
}
