// Package faults kills the real server, at every step of a commit and at random under load, and looks at what its next start makes
// of what is left: nothing that was acknowledged is lost, no batch is there by halves, nothing stays pending, and
// `lancerest check` finds nothing wrong.
//
// The same is asked of replicas on PostgreSQL: of those that stay when one dies at any step, and of all of them when the primary crashes
// under load and its synchronous standby takes over. LANCEREST_SOAK=10m goes on for ten minutes.
//
// The states that a death at a given step leaves behind are made in this process, by a catalog on the same files whose storage fails
// from that step on: the binary holds no code for tests. What happens inside of one server, or between two, is tested in
// internal/catalog.
package faults
