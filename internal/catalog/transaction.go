package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

// The properties of a transaction that the catalog itself keeps. AlterTransaction cannot touch them.
const (
	propPrincipal  = "principal"
	propCreatedAt  = "created_at"
	propResolvedAt = "resolved_at"
	propTables     = "tables"
	propContext    = "context." // and a key of the request's context
)

// DescribeTransaction tells who committed what and when: its status, and as properties the principal, created_at and
// resolved_at (RFC 3339), tables (a JSON list of what was done: operation, id, branch, version or versions), every context.<key> that the request
// carried, and what AlterTransaction set. A pending one is finished first (C7).
//
// A job of the engine is a transaction too: its status tells how far it is, and its properties, besides those, job.operation, job.table,
// job.started_at, job.ended_at, job.attempts, job.error with job.error_code, and job.result.<name>. resolved_at is there once it has ended.
//
// An id that names a table before it is one of the table's own changes, which the Lance library calls transactions: see describeChange.
// Errors: 10, 19 (its manifest is damaged).
func (c *Catalog) DescribeTransaction(ctx context.Context, req *api.DescribeTransactionRequest) (*api.DescribeTransactionResponse, error) {
	if len(req.ID) > 1 {
		return c.describeChange(ctx, req.ID)
	}
	t, err := c.transaction(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	status, properties, err := describeTransaction(t)
	if err != nil {
		return nil, err
	}
	return &api.DescribeTransactionResponse{Status: status, Properties: properties}, nil
}

// transaction finds a resolved transaction by the id that a commit answered with.
func (c *Catalog) transaction(ctx context.Context, path []string) (lance.Transaction, error) {
	missing := api.Errorf(api.CodeTransactionNotFound, "transaction %q is unknown: give the transaction_id that a commit answered with, or a table's id and the version or the uuid of one of its own transactions", lance.ShowID(path))
	if len(path) != 1 || uuid.Validate(path[0]) != nil {
		return lance.Transaction{}, missing
	}
	id := lance.TransactionID(strings.ToLower(path[0]))
	for range chain.ReadRounds {
		var t lance.Transaction
		err := c.state.View(ctx, func(r store.Reader) (err error) {
			t, err = r.Transaction(id)
			return err
		})
		switch {
		case errors.Is(err, store.ErrNotFound):
			return t, missing
		case err != nil || t.State != lance.TransactionPending:
			return t, err
		}
		if err := c.completer.Help(ctx, id); err != nil {
			return t, err
		}
	}
	return lance.Transaction{}, api.Errorf(api.CodeServiceUnavailable, "transaction %q is being finished; try again", id)
}

// tableDone is one element of the property "tables".
type tableDone struct {
	Operation lance.EntryKind          `json:"operation"`
	ID        []string                 `json:"id"`
	Branch    string                   `json:"branch,omitempty"`
	Version   lance.VersionNumber      `json:"version,omitempty"`
	Ranges    [][2]lance.VersionNumber `json:"versions,omitempty"` // first and last, both included
	Deleted   int64                    `json:"deleted_count,omitempty"`
}

func describeTransaction(t lance.Transaction) (api.TransactionStatus, map[string]string, error) {
	done := make([]tableDone, len(t.Entries))
	for i, e := range t.Entries {
		done[i] = tableDone{Operation: e.Kind, ID: e.Path, Branch: string(e.Branch), Version: e.Version, Ranges: e.Ranges, Deleted: e.Count}
	}
	tables, err := json.Marshal(done)
	if err != nil {
		return "", nil, err
	}
	properties := filled(maps.Clone(t.Properties))
	properties[propPrincipal] = t.Principal
	properties[propCreatedAt] = t.CreatedAt.UTC().Format(time.RFC3339Nano)
	properties[propResolvedAt] = t.ResolvedAt.UTC().Format(time.RFC3339Nano)
	properties[propTables] = string(tables)
	for k, v := range t.Context {
		properties[propContext+k] = v
	}
	if isTask(t) {
		delete(properties, propTaskRow)
		delete(properties, propResolvedAt)
		if ended := properties[propTaskEnded]; ended != "" {
			properties[propResolvedAt] = ended
		}
	}
	if t.Status != "" {
		return api.TransactionStatus(t.Status), properties, nil
	}
	if t.State == lance.TransactionAborted {
		return api.TransactionFailed, properties, nil
	}
	return api.TransactionSucceeded, properties, nil
}

// AlterTransaction changes the status and properties that people keep with a transaction, or with one of a table's own changes (see
// DescribeTransaction): all actions or none. It never changes what was committed. Of a job the status can only be set to Canceled, before it
// has ended, which ends it: it commits nothing after that, and what it has committed stays. Errors: 10, 13 (a malformed action, a property that
// the catalog keeps, a status that a job cannot be given, unsetting an absent property in mode Fail), 14 (setting one that exists in mode Fail),
// 19 (a change's manifest is damaged).
func (c *Catalog) AlterTransaction(ctx context.Context, req *api.AlterTransactionRequest) (*api.AlterTransactionResponse, error) {
	if len(req.Actions) == 0 {
		return nil, api.Errorf(api.CodeInvalidInput, "actions is empty: give at least one")
	}
	if len(req.ID) > 1 {
		return c.alterChange(ctx, req)
	}
	found, err := c.transaction(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	resp := &api.AlterTransactionResponse{}
	err = c.state.Update(ctx, func(tx store.Tx) error {
		t, err := tx.Transaction(found.ID)
		if err != nil {
			return err
		}
		a := alteration{transaction: &t, kept: kept}
		if isTask(t) {
			a.status = func(status string) *api.Error { return alterTask(t, status) }
		}
		open := taskOpen(t)
		t.Properties = filled(maps.Clone(t.Properties))
		if err := a.performAll(req.Actions); err != nil {
			return err
		}
		if err := checkMap("the transaction's properties", t.Properties); err != nil {
			return err
		}
		if open && !taskOpen(t) {
			err = endTask(tx, &t)
		} else {
			err = tx.AlterTransaction(t.ID, t.Status, t.Properties)
		}
		if err != nil {
			return err
		}
		if resp.Status, resp.Properties, err = describeTransaction(t); err != nil {
			return err
		}
		return keep(ctx, tx, resp)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// alteration performs actions on a transaction that has been read.
type alteration struct {
	transaction *lance.Transaction
	kept        func(property string) bool     // those that nobody may change
	status      func(status string) *api.Error // why one may not be set; nil where all may
}

func (a alteration) performAll(actions []api.AlterTransactionAction) error {
	for i, action := range actions {
		if err := a.perform(action); err != nil {
			err.Message = "actions[" + strconv.Itoa(i) + "]: " + err.Message
			return err
		}
	}
	return nil
}

func (a alteration) perform(action api.AlterTransactionAction) *api.Error {
	kinds := 0
	for _, set := range []bool{action.SetStatusAction != nil, action.SetPropertyAction != nil, action.UnsetPropertyAction != nil} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return api.Errorf(api.CodeInvalidInput, "it holds %d kinds of action: exactly one of setStatusAction, setPropertyAction and unsetPropertyAction must be set", kinds)
	case action.SetStatusAction != nil:
		return a.setStatus(*action.SetStatusAction)
	case action.SetPropertyAction != nil:
		return a.setProperty(*action.SetPropertyAction)
	}
	return a.unsetProperty(*action.UnsetPropertyAction)
}

func (a alteration) setStatus(s api.AlterTransactionSetStatus) *api.Error {
	if s.Status == nil {
		return api.Errorf(api.CodeInvalidInput, "setStatusAction lacks status")
	}
	status, err := choose("status", (*string)(s.Status), "Queued", "Running", "Succeeded", "Failed", "Canceled")
	if err != nil {
		return err.(*api.Error)
	}
	if a.status != nil {
		if err := a.status(status); err != nil {
			return err
		}
	}
	a.transaction.Status = status
	return nil
}

func (a alteration) setProperty(s api.AlterTransactionSetProperty) *api.Error {
	if s.Key == nil || *s.Key == "" || s.Value == nil {
		return api.Errorf(api.CodeInvalidInput, "setPropertyAction must have a key, which is not empty, and a value")
	}
	mode, err := choose("mode", (*string)(s.Mode), "Overwrite", "Fail", "Skip")
	if err != nil {
		return err.(*api.Error)
	}
	if a.kept(*s.Key) {
		return keptByCatalog(*s.Key)
	}
	_, there := a.transaction.Properties[*s.Key]
	switch {
	case there && mode == "Fail":
		return api.Errorf(api.CodeConcurrentModification, "property %q exists already, and the mode is Fail", *s.Key)
	case there && mode == "Skip":
		return nil
	}
	a.transaction.Properties[*s.Key] = *s.Value
	return nil
}

func (a alteration) unsetProperty(s api.AlterTransactionUnsetProperty) *api.Error {
	if s.Key == nil || *s.Key == "" {
		return api.Errorf(api.CodeInvalidInput, "unsetPropertyAction must have a key that is not empty")
	}
	mode, err := choose("mode", (*string)(s.Mode), "Skip", "Fail")
	if err != nil {
		return err.(*api.Error)
	}
	if a.kept(*s.Key) {
		return keptByCatalog(*s.Key)
	}
	if _, there := a.transaction.Properties[*s.Key]; !there && mode == "Fail" {
		return api.Errorf(api.CodeInvalidInput, "property %q does not exist, and the mode is Fail", *s.Key)
	}
	delete(a.transaction.Properties, *s.Key)
	return nil
}

// kept reports whether the catalog itself keeps a property.
func kept(key string) bool {
	switch key {
	case propPrincipal, propCreatedAt, propResolvedAt, propTables:
		return true
	}
	return strings.HasPrefix(key, propContext) || strings.HasPrefix(key, propTask)
}

func keptByCatalog(key string) *api.Error {
	return api.Errorf(api.CodeInvalidInput, "property %q is kept by the catalog and cannot be changed: choose another key", key)
}
