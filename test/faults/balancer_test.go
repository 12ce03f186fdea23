//go:build unix

package faults_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// balancer is the one address that clients know of replicas: each connection leads to any of them that lives, as behind a load balancer that
// knows nothing of HTTP.
type balancer struct {
	listener net.Listener
	replicas *replicas
	wg       sync.WaitGroup
}

func balance(t *testing.T, r *replicas) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{listener: l, replicas: r}
	b.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			b.wg.Go(func() { b.lead(conn) })
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		b.wg.Wait()
	})
	return b
}

func (b *balancer) url() string { return "http://" + b.listener.Addr().String() }

// lead passes on what a client and a replica say until one of them is gone.
func (b *balancer) lead(client net.Conn) {
	defer client.Close()
	replica := b.dial()
	if replica == nil {
		return
	}
	defer replica.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(client, replica)
		_ = client.Close() // whoever waits for the other direction
	}()
	_, _ = io.Copy(replica, client)
	_ = replica.Close()
	<-done
}

// dial connects to a replica; one that is dead refuses, and the next one is tried.
func (b *balancer) dial() net.Conn {
	for range 10 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.replicas.any().base, "http://"))
		if err == nil {
			return conn
		}
	}
	return nil
}
