package finish

import (
	"encoding/json"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// The kinds of jobs that commits queue (C12). All are idempotent.
const (
	// JobPurge removes the directory of a dropped table, then its rows. Its payload is a PurgePayload.
	JobPurge = "purge_table"
	// JobForget removes the rows of a deregistered table and leaves its files alone. Its payload is a ForgetPayload.
	JobForget = "forget_table"
	// JobDeleteManifests removes the manifests of versions that were deleted by request. Its payload is a ManifestsPayload.
	JobDeleteManifests = "delete_manifests"
	// JobDropDetached removes the detached versions that a transaction attached, some time after: what they hold has numbers of their own. Its
	// payload is the transaction's id, as that of JobCleanAborted.
	JobDropDetached = "drop_detached"
	// JobCleanAborted removes what an aborted transaction had published (C10).
	JobCleanAborted = "clean_aborted"
)

// PurgePayload is the payload of JobPurge.
type PurgePayload struct {
	Table    lance.ObjectID `json:"table"`
	Location string         `json:"location"`
}

// ForgetPayload is the payload of JobForget.
type ForgetPayload struct {
	Table lance.ObjectID `json:"table"`
}

// ManifestsPayload is the payload of JobDeleteManifests: versions of one branch of the table at a location.
type ManifestsPayload struct {
	Table    lance.ObjectID   `json:"table"`
	Location string           `json:"location"`
	Branch   lance.Branch     `json:"branch,omitempty"`
	Versions []DeletedVersion `json:"versions"`
}

// DeletedVersion is a version whose manifest is to be removed, if its content still has this digest.
type DeletedVersion struct {
	Number lance.VersionNumber `json:"number"`
	Scheme lance.NamingScheme  `json:"scheme"`
	Digest string              `json:"digest"`
}

// AbortGrace is how long after an abort its objects are looked for once more: by then writes that were under way have landed.
const AbortGrace = 30 * time.Second

// detachedKeep is how long a detached version outlives its being attached, for those who still read it by its number (C13).
const detachedKeep = time.Hour

// InsertJob queues a job of a kind, due at once, with a payload that is written as JSON. Errors: those of the store.
func InsertJob(tx store.Tx, kind string, payload any) error {
	text, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	return tx.InsertJob(store.Job{ID: tx.NewID(), Kind: kind, Payload: string(text), RunAt: tx.Now()})
}

// Wake tells the runner of jobs that some may have been added.
func (c *Completer) Wake() { c.opts.Wake() }

// DetachedOf returns the number of the detached version that an entry attaches, false if it attaches none (C14).
func DetachedOf(e lance.Entry) (lance.VersionNumber, bool) {
	number, _, final := lance.ParseManifestName(e.Staged)
	return number, e.Kind == lance.EntryCreateVersion && final && number.Detached() && number != e.Version
}
