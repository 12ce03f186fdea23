// Package faults kills the real server, at every step of a commit and at random under load, and looks at what its next start makes
// of what is left: nothing that was acknowledged is lost, no batch is there by halves, nothing stays pending, and
// `lancerest check` finds nothing wrong.
//
// The same is asked with the state in PostgreSQL, and of replicas there: of those that stay when one dies at any step; of all of them when the
// primary crashes under load and its synchronous standby takes over; and while replicas, their clients, which are processes too, and the
// database are killed at random, where everything that the clients were told must be explained by one order of their requests.
// LANCEREST_SOAK=10m goes on for ten minutes, and LANCEREST_PYTHON lets pylance writers take part (writer.py).
//
// The states that a death at a given step leaves behind are made in this process, by a catalog on the same files whose storage fails
// from that step on: the binary holds no code for tests. What happens inside of one server, or between two, is tested in
// internal/catalog.
package faults
