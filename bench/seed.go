package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// seedChunk is how many tables one database transaction adds.
const seedChunk = 10_000

// seed fills the catalog in dir/data with tables that have one version each, and the record of the transaction that made it: the
// rows that as many requests would have left. It writes them through package sqlstore, many in one transaction, because a million
// requests would take minutes. No manifests are written: nothing that is measured on these tables reads one.
func seed(ctx context.Context, dir string, tables int) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	at, err := lance.ParseLocation(filepath.ToSlash(filepath.Join(root, "data", "tables")))
	if err != nil {
		return err
	}
	s, err := sqlstore.OpenSQLite(ctx, sqlstore.Options{Path: filepath.Join(dir, "data", "catalog.db")})
	if err != nil {
		return err
	}
	l := loader{root: at.String(), namespace: 1}
	err = s.Update(ctx, l.makeNamespace)
	for from := 0; from < tables && err == nil; from += seedChunk {
		err = s.Update(ctx, func(tx store.Tx) error { return l.chunk(tx, from, min(from+seedChunk, tables)) })
	}
	return errors.Join(err, s.Close())
}

// loader makes rows.
type loader struct {
	root      string
	namespace lance.ObjectID
}

func (l *loader) makeNamespace(tx store.Tx) error {
	root, err := tx.Namespace(nil)
	if err != nil {
		return err
	}
	l.namespace = tx.NewID()
	return tx.InsertNamespace(lance.Namespace{ID: l.namespace, Parent: root.ID, Path: lance.NamespaceID{namespace}, CreatedAt: tx.Now()})
}

func (l *loader) chunk(tx store.Tx, from, to int) error {
	versions := make([]lance.Version, 0, to-from)
	for i := from; i < to; i++ {
		t := lance.Table{
			ID: tx.NewID(), Namespace: l.namespace, Path: lance.TableID{namespace, loaded(i)}, State: lance.TableLive, CreatedAt: tx.Now(),
		}
		t.Location = fmt.Sprintf("%s/%013x_%s.lance", l.root, int64(t.ID), loaded(i))
		if err := tx.InsertTable(t); err != nil {
			return err
		}
		v := l.version(t, tx.Now())
		if err := tx.InsertTransaction(l.transaction(t, v)); err != nil {
			return err
		}
		versions = append(versions, v)
	}
	return tx.InsertVersions(versions)
}

func (l *loader) version(t lance.Table, now time.Time) lance.Version {
	return lance.Version{
		Slot: lance.Slot{Chain: lance.Chain{Table: t.ID}, Number: 1}, State: lance.VersionCommitted, Origin: lance.OriginCatalog,
		Transaction: lance.TransactionID(uuid.Must(uuid.NewV7()).String()), Scheme: lance.SchemeV2, Timestamp: now,
		Staged: lance.ManifestName(1, lance.SchemeV2) + "-" + uuid.NewString(), Size: int64(len(manifest)),
		ETag: fmt.Sprintf(`"%x-%x-%x"`, int64(t.ID)&0xffffff, now.UnixMicro(), len(manifest)),
	}
}

func (l *loader) transaction(t lance.Table, v lance.Version) lance.Transaction {
	return lance.Transaction{
		ID: v.Transaction, State: lance.TransactionCommitted, CreatedAt: v.Timestamp, ResolvedAt: v.Timestamp,
		Entries: []lance.Entry{{
			Kind: lance.EntryCreateVersion, Table: t.ID, Path: t.Path, Location: t.Location, Version: v.Number, Scheme: v.Scheme,
			Staged: v.Staged, Digest: fmt.Sprintf("%x", v.Digest), Size: v.Size, Timestamp: v.Timestamp.UnixMilli(),
		}},
	}
}
