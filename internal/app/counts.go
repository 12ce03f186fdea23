package app

import (
	"github.com/lancerest/lancerest/internal/catalog"
	"github.com/lancerest/lancerest/internal/telemetry"
)

// counts are the counters of a server that metrics show.
func counts(c *catalog.Catalog, state state) []telemetry.Count {
	n := c.Counters()
	return []telemetry.Count{
		{Name: "lancerest_commits_total", Help: "Commits that this server reserved and saw through.", Value: telemetry.CountOf(&n.Commits)},
		{Name: "lancerest_versions_total", Help: "Versions that they made.", Value: telemetry.CountOf(&n.Versions)},
		{Name: "lancerest_conflicts_total", Help: "Commits answered with code 14.", Value: telemetry.CountOf(&n.Conflicts)},
		{Name: "lancerest_replays_total", Help: "Requests that had been carried out before and were answered as then.", Value: telemetry.CountOf(&n.Replays)},
		{Name: "lancerest_helps_total", Help: "Transactions of others that this server finished.", Value: telemetry.CountOf(&n.Helps)},
		{Name: "lancerest_adoptions_total", Help: "Versions taken in that writers published past the catalog.", Value: telemetry.CountOf(&n.Adoptions)},
		{Name: "lancerest_aborts_total", Help: "Transactions that could not be completed and were undone.", Value: telemetry.CountOf(&n.Aborts)},
		{Name: "lancerest_pruned_total", Help: "Versions found to have been cleaned up by clients.", Value: telemetry.CountOf(&n.Pruned)},
		{Name: "lancerest_reconciled_tables_total", Help: "Tables in use whose versions were compared with storage in the background.", Value: telemetry.CountOf(&n.Reconciled)},
		{Name: "lancerest_reconcile_errors_total", Help: "Those of them for which that did not work.", Value: telemetry.CountOf(&n.Unreconciled)},
		{Name: "lancerest_removed_objects_total", Help: "Objects of aborted transactions met in a slot and removed.", Value: telemetry.CountOf(&n.Zombies)},
		{Name: "lancerest_state_groups_total", Help: "Groups of updates that the state committed at once.", Value: func() float64 { return float64(state.Stats().Groups) }},
		{Name: "lancerest_state_updates_total", Help: "Updates in those groups.", Value: func() float64 { return float64(state.Stats().Updates) }},
		{Name: "lancerest_state_retries_total", Help: "Updates that met another one in the database and ran again.", Value: func() float64 { return float64(state.Stats().Retries) }},
	}
}
