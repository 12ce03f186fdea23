package sqlstore

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
)

const (
	transactionByID = `
SELECT id, state, principal, created_at, resolved_at, context, entries, status, properties
FROM transactions
WHERE id = $1`

	pendingTransactions = `
SELECT id
FROM transactions
WHERE state = 0 AND created_at < $1
ORDER BY created_at, id
LIMIT $2`

	abortedContent = `SELECT txn FROM aborted WHERE table_id = $1 AND branch = $2 AND version = $3 AND digest = $4`

	burntSlot = `SELECT txn FROM aborted WHERE table_id = $1 AND branch = $2 AND version = $3 AND seen = 1 LIMIT 1`

	metaByKey = `SELECT value FROM meta WHERE key = $1`

	insertTransaction = `
INSERT INTO transactions (id, state, principal, created_at, resolved_at, context, entries, status, properties)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT DO NOTHING`

	resolveTransaction = `
UPDATE transactions
SET state = $2, resolved_at = $3, entries = COALESCE($4, entries)
WHERE id = $1 AND state + 0 = 0`

	transactionExists = `SELECT id FROM transactions WHERE id = $1`

	recordAborted = `
INSERT INTO aborted (table_id, branch, version, digest, txn, seen)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING`

	alterTransaction = `UPDATE transactions SET status = $2, properties = $3 WHERE id = $1`

	insertMeta = `INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`
)

// Transaction implements store.TransactionReader.
func (s reader) Transaction(id lance.TransactionID) (lance.Transaction, error) {
	var t lance.Transaction
	found, err := one(s, transactionByID, []any{string(id)}, func(r row) (err error) {
		t, err = scanTransaction(r)
		return err
	})
	if err != nil {
		return lance.Transaction{}, fmt.Errorf("look up transaction %s: %w", id, err)
	}
	if !found {
		return lance.Transaction{}, notFound("transaction", id)
	}
	return t, nil
}

// PendingTransactions implements store.TransactionReader.
func (s reader) PendingTransactions(before time.Time, limit int) ([]lance.TransactionID, error) {
	var ids []lance.TransactionID
	err := s.query(pendingTransactions, [][]any{{encodeTime(before), int64(limit)}}, func(_ int, r row) error {
		ids = append(ids, lance.TransactionID(r.Text(0)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list pending transactions before %s: %w", before.Format(time.RFC3339), err)
	}
	return ids, nil
}

// Aborted implements store.TransactionReader.
func (s reader) Aborted(contents []store.Content) ([]bool, error) {
	aborted, statement := askWhether(abortedContent, contentArgs(contents))
	if err := s.together(statement); err != nil {
		return nil, fmt.Errorf("look up %d aborted contents: %w", len(contents), err)
	}
	return aborted, nil
}

// Burnt implements store.TransactionReader.
func (s reader) Burnt(slots []lance.Slot) ([]bool, error) {
	burnt, statement := askWhether(burntSlot, slotArgs(slots))
	if err := s.together(statement); err != nil {
		return nil, fmt.Errorf("look up %d burnt slots: %w", len(slots), err)
	}
	return burnt, nil
}

// askWhether returns what finds out for which lists of arguments a statement gives a row, and where that comes to.
func askWhether(sql string, args [][]any) ([]bool, *statement) {
	found := make([]bool, len(args))
	return found, &statement{sql: sql, args: args, scan: func(i int, _ row) error {
		found[i] = true
		return nil
	}}
}

// Meta implements store.TransactionReader.
func (s reader) Meta(key string) (string, error) {
	var value string
	found, err := one(s, metaByKey, []any{key}, func(r row) error {
		value = r.Text(0)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("look up meta %q: %w", key, err)
	}
	if !found {
		return "", notFound("meta", key)
	}
	return value, nil
}

// InsertTransaction implements store.TransactionWriter.
func (t *tx) InsertTransaction(transaction lance.Transaction) error {
	args, err := insertTransactionArgs(transaction)
	if err != nil {
		return err
	}
	n, err := change(t, insertTransaction, args...)
	if err != nil {
		return fmt.Errorf("insert transaction %s: %w", transaction.ID, err)
	}
	if n == 0 {
		return fmt.Errorf("insert transaction %s: %w", transaction.ID, store.ErrExists)
	}
	return nil
}

func insertTransactionArgs(transaction lance.Transaction) ([]any, error) {
	context, err := encodeMap(transaction.Context)
	if err != nil {
		return nil, fmt.Errorf("insert transaction %s: %w", transaction.ID, err)
	}
	properties, err := encodeMap(transaction.Properties)
	if err != nil {
		return nil, fmt.Errorf("insert transaction %s: %w", transaction.ID, err)
	}
	entries, err := json.Marshal(transaction.Entries)
	if err != nil {
		return nil, fmt.Errorf("insert transaction %s: %w", transaction.ID, err)
	}
	return []any{
		string(transaction.ID), int64(transaction.State), transaction.Principal, encodeTime(transaction.CreatedAt),
		encodeTime(transaction.ResolvedAt), context, string(entries), transaction.Status, properties,
	}, nil
}

// ResolveTransaction implements store.TransactionWriter.
func (t *tx) ResolveTransaction(id lance.TransactionID, state lance.TransactionState, entries []lance.Entry) (bool, error) {
	args, err := t.resolveArgs(id, state, entries)
	if err != nil {
		return false, err
	}
	n, err := change(t, resolveTransaction, args...)
	if err != nil {
		return false, fmt.Errorf("resolve transaction %s: %w", id, err)
	}
	return n == 1, t.known(id, n)
}

func (t *tx) resolveArgs(id lance.TransactionID, state lance.TransactionState, entries []lance.Entry) ([]any, error) {
	if state != lance.TransactionCommitted && state != lance.TransactionAborted {
		return nil, fmt.Errorf("resolve transaction %s: %d is not a state in which a transaction ends", id, state)
	}
	var replacement any // nil keeps what is there
	if entries != nil {
		text, err := json.Marshal(entries)
		if err != nil {
			return nil, fmt.Errorf("resolve transaction %s: %w", id, err)
		}
		replacement = string(text)
	}
	return []any{string(id), int64(state), encodeTime(t.now), replacement}, nil
}

// known returns store.ErrNotFound for a transaction of which no row was changed because there is none.
func (t *tx) known(id lance.TransactionID, changed int64) error {
	if changed > 0 {
		return nil
	}
	if found, err := exists(t, transactionExists, string(id)); err != nil || !found {
		return errOr(err, notFound("transaction", id))
	}
	return nil
}

// RecordAborted implements store.TransactionWriter.
func (t *tx) RecordAborted(id lance.TransactionID, contents []store.Content) error {
	args := contentArgs(contents)
	for i := range args {
		args[i] = append(args[i], string(id), encodeBool(contents[i].Seen))
	}
	if _, err := t.exec(recordAborted, args); err != nil {
		return fmt.Errorf("record %d contents of aborted transaction %s: %w", len(contents), id, err)
	}
	return nil
}

// AlterTransaction implements store.TransactionWriter.
func (t *tx) AlterTransaction(id lance.TransactionID, status string, properties map[string]string) error {
	text, err := encodeMap(properties)
	if err != nil {
		return fmt.Errorf("alter transaction %s: %w", id, err)
	}
	n, err := change(t, alterTransaction, string(id), status, text)
	if err != nil {
		return fmt.Errorf("alter transaction %s: %w", id, err)
	}
	if n == 0 {
		return notFound("transaction", id)
	}
	return nil
}

// InsertMeta implements store.TransactionWriter.
func (t *tx) InsertMeta(key, value string) error {
	n, err := change(t, insertMeta, key, value)
	if err != nil {
		return fmt.Errorf("insert meta %q: %w", key, err)
	}
	if n == 0 {
		return fmt.Errorf("insert meta %q: %w", key, store.ErrExists)
	}
	return nil
}

func contentArgs(contents []store.Content) [][]any {
	args := make([][]any, len(contents))
	for i := range contents {
		s := contents[i].Slot
		args[i] = []any{int64(s.Chain.Table), string(s.Chain.Branch), int64(s.Number), contents[i].Digest[:]}
	}
	return args
}

func scanTransaction(r row) (lance.Transaction, error) {
	t := lance.Transaction{
		ID:         lance.TransactionID(r.Text(0)),
		State:      lance.TransactionState(r.Int(1)),
		Principal:  r.Text(2),
		CreatedAt:  decodeTime(r.Int(3)),
		ResolvedAt: decodeTime(r.Int(4)),
		Status:     r.Text(7),
	}
	var err error
	if t.Context, err = decodeMap(r.Text(5)); err != nil {
		return t, err
	}
	if t.Properties, err = decodeMap(r.Text(8)); err != nil {
		return t, err
	}
	return t, json.Unmarshal([]byte(r.Text(6)), &t.Entries)
}
