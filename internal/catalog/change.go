package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/commit/chain"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
	"github.com/lancerest/lancerest/internal/place"
	"github.com/lancerest/lancerest/internal/state"
	"github.com/lancerest/lancerest/internal/store"
)

// The properties of a table's own change. AlterTransaction cannot touch them.
const (
	propUUID        = "uuid"
	propVersion     = "version"
	propBranch      = "branch" // absent for main
	propReadVersion = "read_version"
	propOperation   = "operation"
	propTag         = "tag"
	propTransaction = "transaction_id" // of the catalog's transaction that committed the change
)

func keptOfChange(property string) bool {
	return slices.Contains([]string{propUUID, propVersion, propBranch, propReadVersion, propOperation, propTag, propTransaction}, property)
}

// change is what a writer noted of the change that made a version.
type change struct {
	lance.Change
	version lance.Version
}

// describeChange tells what a writer noted of a change: the Lance library's name of its operation, its uuid, the version it made and the
// one it was made on, the id of the catalog's transaction that committed it, and what the writer, and AlterTransaction, added. The
// last name of the id is the version, of main, or the uuid of a change on any branch.
func (c *Catalog) describeChange(ctx context.Context, path []string) (*api.DescribeTransactionResponse, error) {
	ch, err := c.change(ctx, path)
	if err != nil {
		return nil, err
	}
	var noted lance.Transaction
	err = c.state.View(ctx, func(r store.Reader) (err error) {
		noted, err = r.Transaction(ch.recordID())
		return state.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, err
	}
	status, properties := ch.describe(noted)
	return &api.DescribeTransactionResponse{Status: status, Properties: properties}, nil
}

// recordID is the id under which the state has what AlterTransaction did to a change. It is no UUID, as those of commits are.
func (ch change) recordID() lance.TransactionID {
	name := ch.UUID
	if name == "" {
		name = fmt.Sprintf("%s/%d", ch.version.Chain.Branch, ch.version.Number)
	}
	return lance.TransactionID(fmt.Sprintf("change/%d/%s", ch.version.Chain.Table, name))
}

// What the record of a change puts before the keys of its properties: they were set, or taken away although the writer had set them.
const (
	setProperty   = "+"
	unsetProperty = "-"
)

// altered returns the properties that a writer gave with the changes on record applied.
func (ch change) altered(noted lance.Transaction) map[string]string {
	properties := filled(maps.Clone(ch.Properties))
	for key, value := range noted.Properties {
		if name, ok := strings.CutPrefix(key, unsetProperty); ok {
			delete(properties, name)
		} else {
			properties[strings.TrimPrefix(key, setProperty)] = value
		}
	}
	return properties
}

func (ch change) describe(noted lance.Transaction) (api.TransactionStatus, map[string]string) {
	properties := ch.altered(noted)
	set := func(key, value string) {
		delete(properties, key)
		if value != "" {
			properties[key] = value
		}
	}
	set(propUUID, ch.UUID)
	set(propVersion, strconv.FormatInt(int64(ch.version.Number), 10))
	set(propBranch, string(ch.version.Chain.Branch))
	set(propReadVersion, strconv.FormatUint(uint64(ch.ReadVersion), 10)) // as the writer has it, whose detached versions are large
	set(propOperation, ch.Operation)
	set(propTag, ch.Tag)
	set(propTransaction, string(ch.version.Transaction))
	if noted.Status != "" {
		return api.TransactionStatus(noted.Status), properties
	}
	return api.TransactionSucceeded, properties
}

// alterChange notes changes of a change's status and properties. What the writer wrote stays as it is.
func (c *Catalog) alterChange(ctx context.Context, req *api.AlterTransactionRequest) (*api.AlterTransactionResponse, error) {
	ch, err := c.change(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	resp := &api.AlterTransactionResponse{}
	err = c.state.Update(ctx, func(tx store.Tx) error {
		noted, err := tx.Transaction(ch.recordID())
		if err := state.IgnoreNotFound(err); err != nil {
			return err
		}
		now := lance.Transaction{Status: noted.Status, Properties: ch.altered(noted)}
		if err := (alteration{transaction: &now, kept: keptOfChange}).performAll(req.Actions); err != nil {
			return err
		}
		now.Properties = ch.difference(now.Properties)
		if err := checkMap("what is changed of the transaction's properties", now.Properties); err != nil {
			return err
		}
		if noted.ID == "" {
			now.ID, now.State, now.CreatedAt, now.ResolvedAt = ch.recordID(), lance.TransactionCommitted, tx.Now(), tx.Now()
			err = tx.InsertTransaction(now)
		} else {
			err = tx.AlterTransaction(noted.ID, now.Status, now.Properties)
		}
		if err != nil {
			return err
		}
		resp.Status, resp.Properties = ch.describe(now)
		return keep(ctx, tx, resp)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// difference returns what a record must have so that altered gives the properties.
func (ch change) difference(properties map[string]string) map[string]string {
	record := map[string]string{}
	for key := range ch.Properties {
		if _, there := properties[key]; !there {
			record[unsetProperty+key] = ""
		}
	}
	for key, value := range properties {
		if written, there := ch.Properties[key]; !there || written != value {
			record[setProperty+key] = value
		}
	}
	return record
}

// change finds the change that an id names: a table's, and a version or a uuid. Errors: 10, 19.
func (c *Catalog) change(ctx context.Context, path []string) (change, error) {
	missing := func(why string) error {
		return api.Errorf(api.CodeTransactionNotFound, "transaction %q is unknown: %s", lance.ShowID(path), why)
	}
	name := path[len(path)-1]
	t, err := c.table(ctx, path[:len(path)-1])
	if code := api.CodeOf(err); code == api.CodeTableNotFound || code == api.CodeNamespaceNotFound {
		return change{}, missing("there is no table " + strconv.Quote(lance.ShowID(path[:len(path)-1])))
	}
	if err != nil {
		return change{}, err
	}
	var v lance.Version
	if number, notNumber := strconv.ParseInt(name, 10, 64); notNumber == nil {
		v, err = c.chains.Version(ctx, t, lance.Slot{Chain: lance.Chain{Table: t.ID}, Number: lance.VersionNumber(number)})
		if api.CodeOf(err) == api.CodeTableVersionNotFound {
			return change{}, missing("the table has no such version")
		}
	} else {
		v, err = c.versionChangedBy(ctx, t, strings.ToLower(name))
	}
	if err != nil {
		return change{}, err
	}
	if v.Number == 0 {
		return change{}, missing("no version of the table was made by it")
	}
	found, err := c.readChange(ctx, &reading{c: c, table: t, version: v})
	if err == nil && found == nil {
		return change{}, missing(fmt.Sprintf("the writer of version %d left no note of it", v.Number))
	}
	if err != nil {
		return change{}, err
	}
	return change{Change: *found, version: v}, nil
}

// changesRead bounds how many manifests are read to find a change among versions whose rows do not have its uuid.
const changesRead = 1000

// versionChangedBy finds the version that a change made, on any branch, Number 0 if there is none. It goes through the rows of the table, and
// reads the manifests of those that an older release wrote.
func (c *Catalog) versionChangedBy(ctx context.Context, t lance.Table, id string) (lance.Version, error) {
	var branches []lance.Branch
	err := c.state.View(ctx, func(r store.Reader) (err error) {
		branches, err = r.Branches(t.ID)
		return err
	})
	if err != nil {
		return lance.Version{}, err
	}
	read := 0
	for _, b := range branches {
		v, err := c.changedOnBranch(ctx, t, b, func(v lance.Version) (bool, error) {
			if v.Summary == nil && read < changesRead {
				read++
				s, err := (&reading{c: c, table: t, version: v}).summary(ctx)
				if err != nil {
					return false, err
				}
				v.Summary = s
			}
			return v.Summary != nil && v.Summary.TransactionUUID == id, nil
		})
		if err != nil || v.Number != 0 {
			return v, err
		}
	}
	return lance.Version{}, nil
}

// changedOnBranch returns the newest committed version of a chain that is the one sought.
func (c *Catalog) changedOnBranch(ctx context.Context, t lance.Table, b lance.Branch, sought func(lance.Version) (bool, error)) (lance.Version, error) {
	page := store.VersionPage{Limit: chain.VersionChunk, Descending: true}
	for {
		var rows []lance.Version
		err := c.state.View(ctx, func(r store.Reader) (err error) {
			rows, err = r.ListVersions(lance.Chain{Table: t.ID, Branch: b}, page)
			return err
		})
		if err != nil {
			return lance.Version{}, err
		}
		for _, v := range rows {
			page.After = v.Number
			if v.State != lance.VersionCommitted {
				continue
			}
			if is, err := sought(v); err != nil || is {
				return v, err
			}
		}
		if len(rows) < page.Limit {
			return lance.Version{}, nil
		}
	}
}

// readChange reads what the writer of a version noted, from the manifest or from a file of its own; nil where there is none.
func (c *Catalog) readChange(ctx context.Context, r *reading) (*lance.Change, error) {
	data, err := r.manifest(ctx)
	if err != nil {
		return nil, err
	}
	found, there, err := lance.ReadChange(data)
	if err == nil && there {
		return &found, nil
	}
	if err != nil {
		return nil, r.damaged(err)
	}
	m, err := lance.ReadManifest(data)
	if err != nil {
		return nil, r.damaged(err)
	}
	if m.TransactionFile == "" {
		return nil, nil
	}
	p, err := c.places.At(r.table.Location)
	if err != nil {
		return nil, err
	}
	key, err := lance.ChangeKey(p.Dir, r.version.Chain.Branch, m.TransactionFile)
	if err != nil {
		return nil, r.damaged(err)
	}
	file, _, err := p.Objects.Get(ctx, key, c.places.MaxManifest())
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, p.Proven(ctx, nil)
	}
	if err != nil {
		return nil, place.StorageError("read "+key, err)
	}
	found, err = lance.ParseChange(file)
	if err != nil {
		return nil, r.damaged(err)
	}
	return &found, nil
}
