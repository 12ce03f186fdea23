//go:build unix

package faults_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/store/sqlstore/pgtest"
)

// The load of havoc.
const (
	havocTables   = 4
	havocReplicas = 3
	havocClients  = 5
)

// havocRound is how long clients and servers are killed before everything is looked at.
const havocRound = 4 * time.Second

// havoc is replicas, databases and clients that are killed at random.
type havoc struct {
	replicas *replicas
	balancer *balancer
	python   *pythonWriters
	tables   []table
	rnd      *rand.Rand

	clients []*clientProcess
	seed    uint64
	notes   [][]note // of clients that are gone

	acknowledged, operations, replicaKills, clientKills, midCommit, settled, databaseKills, pythonKills int
}

// killAnything kills replicas and clients at random moments, by themselves and at once, until the time is over; then the clients end what they
// are at.
func (h *havoc) killAnything(t *testing.T, cluster *pgtest.Cluster) {
	t.Helper()
	var o order
	o.URL = h.balancer.url()
	for _, tb := range h.tables {
		o.Tables = append(o.Tables, orderedTable{Name: tb.name, Key: tb.key})
	}
	next := func() *clientProcess {
		h.seed++
		o.Seed = h.seed
		return startClient(t, o)
	}
	for range havocClients {
		h.clients = append(h.clients, next())
	}
	for end := time.Now().Add(havocRound); time.Now().Before(end); {
		time.Sleep(time.Duration(50+h.rnd.IntN(400)) * time.Millisecond) // a moment by chance, whatever is under way
		switch what := h.rnd.IntN(20); {
		case what < 9:
			n := h.rnd.IntN(len(h.clients))
			h.notes = append(h.notes, h.clients[n].kill(t))
			h.clients[n] = next()
			h.clientKills++
		case what < 17:
			h.replicas.killAny(t)
			h.replicaKills++
		case what < 19:
			h.python.killAny(t, h.rnd.IntN(pythonProcesses))
			h.pythonKills += min(1, len(h.python.running))
		default:
			cluster.Kill(t)
			time.Sleep(time.Duration(h.rnd.IntN(200)) * time.Millisecond)
			cluster.Restart(t)
			h.databaseKills++
		}
	}
	for _, c := range h.clients {
		h.notes = append(h.notes, c.stop(t))
	}
	h.clients = nil
}

// round lets everything be killed for a while, and looks at what was asked and answered meanwhile.
func (h *havoc) round(t *testing.T, cluster *pgtest.Cluster) {
	t.Helper()
	past := &history{tables: h.tables, base: h.heads(t, h.replicas.all[0])}
	h.notes = nil
	h.killAnything(t, cluster)
	for _, notes := range h.notes {
		cut := past.add(t, notes, func(req *api.BatchCreateTableVersionsRequest) verdict {
			h.settled++
			_, err := untilAnswered(h.replicas, req)
			if v := judge(err); v == done || v == refused {
				return v
			}
			t.Errorf("a commit whose answer was lost, sent again: %v", err)
			return unknown
		})
		if cut {
			h.midCommit++
		}
	}
	for _, p := range h.replicas.all {
		heads := h.heads(t, p)
		for i, head := range heads {
			at := now()
			past.add(t, []note{{At: at, Read: &i}, {At: now(), Told: &head}}, nil)
		}
	}
	past.check(t)
	h.acknowledged += past.acknowledged()
	h.operations += len(past.operations)
}

// heads reads what all tables end in.
func (h *havoc) heads(t *testing.T, p *process) []told {
	t.Helper()
	heads := make([]told, len(h.tables))
	for i, tb := range h.tables {
		var err error
		if heads[i].Version, heads[i].Mark, err = latest(p, tb); err != nil {
			t.Fatalf("read %s when everything is over: %v", tb.name, err)
		}
	}
	return heads
}

// killedAtRandom kills replicas, their clients, processes of their own, and now and then the database, at random under load, for as long as soak
// says. Between the rounds everything that clients were told is searched for an order that explains it.
func killedAtRandom(t *testing.T, cluster *pgtest.Cluster) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	url := cluster.Schema(t, "lancerest")
	data := newFolder(t).data
	h := &havoc{replicas: startReplicas(t, data, url, havocReplicas), rnd: rand.New(rand.NewPCG(seed, 0))}
	h.balancer = balance(t, h.replicas)
	for i := range havocTables {
		h.tables = append(h.tables, declare(t, h.replicas.all[0], fmt.Sprintf("h%d", i)))
	}
	h.python = newPython(t, h.balancer.url())
	h.python.write(t, pythonProcesses)
	_, until := soak(t)
	rounds := 0
	for ; rounds == 0 || time.Now().Before(until); rounds++ {
		h.round(t, cluster)
		if t.Failed() {
			t.Fatalf("in round %d", rounds)
		}
	}
	appended := h.python.check(t)
	nothingPending(t, url)
	h.replicas.stop(t)
	clean(t, data, "--state", url)
	if h.acknowledged == 0 || h.clientKills == 0 {
		t.Error("nothing was acknowledged, or nobody was killed: the test shows nothing")
	}
	t.Logf("%d rounds: %d commits acknowledged among %d operations; killed: %d replicas, %d clients (%d in mid-commit), %d databases, %d pylance writers; %d commits without an answer were settled; %d pylance transactions acknowledged",
		rounds, h.acknowledged, h.operations, h.replicaKills, h.clientKills, h.midCommit, h.databaseKills, h.pythonKills, h.settled, appended)
}
