package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
)

// EventKeyless: a table was declared, and keys for its writer could not be had.
const EventKeyless EventKind = "keyless"

// storageOptions are what a client needs to reach a table by itself, nil where its root gives nothing. Without a word from the client
// it is given keys, if the root gives any; with vend false none. Errors: 17 (the provider does not answer), 18 (it refuses this
// server), 19 (there can be no keys for this location).
func (c *Catalog) storageOptions(ctx context.Context, location string, vend *bool) (map[string]string, error) {
	p, err := c.places.At(location)
	if err != nil {
		return nil, err
	}
	if unsaid(vend) {
		return p.Root.Access.WithoutKeys().Values, nil
	}
	given, err := p.Root.Access.WithKeys(ctx, p.Location)
	if err != nil {
		return nil, accessError(location, err)
	}
	return given.Values, nil
}

// accessError translates what a provider of keys answered. It is never "not found" (case C4).
func accessError(location string, err error) error {
	switch {
	case errors.Is(err, access.ErrUnavailable):
		return api.Errorf(api.CodeServiceUnavailable, "keys for %s cannot be had now: whoever makes them does not answer as it should; try again", location).Because(err)
	case errors.Is(err, access.ErrUnfit):
		return api.Errorf(api.CodeInvalidTableState, "keys for %s alone cannot be made: %v", location, err)
	case errors.Is(err, access.ErrRefused):
		return api.Errorf(api.CodeInternal, "keys for %s cannot be had: whoever makes them refuses this server; its operator finds the reason in the log", location).Because(err)
	}
	return fmt.Errorf("keys for %s: %w", location, err)
}

// EquipDeclared adds to the answer of DeclareTable what the client needs to write the table, apart from the answer itself, which may be
// kept for repeating. The table is declared by then: where keys cannot be had the answer goes without, which is an event, and the
// client asks DescribeTable for them, as it does when keys end.
func (c *Catalog) EquipDeclared(ctx context.Context, req *api.DeclareTableRequest, resp *api.DeclareTableResponse) {
	if resp.Location == nil {
		return
	}
	if p, err := c.places.At(*resp.Location); err != nil || p.Root.Access.Mode() == access.None {
		return
	}
	vend := req.VendCredentials
	// An answer that is repeated may be about a table that is gone: nobody is given keys for its place any more.
	if t, err := c.table(ctx, req.ID); err != nil || t.Location != *resp.Location {
		vend = ptr(false)
	}
	options, err := c.storageOptions(ctx, *resp.Location, vend)
	if err != nil {
		c.opts.Notify(ctx, Event{Kind: EventKeyless, Table: lance.ShowID(req.ID), Detail: causeOf(err)})
		options, err = c.storageOptions(ctx, *resp.Location, ptr(false))
	}
	if err == nil {
		resp.StorageOptions = options
	}
}

// causeOf is an error's text with the cause that callers are not told.
func causeOf(err error) string {
	var e *api.Error
	if errors.As(err, &e) && e.Cause != nil {
		return e.Cause.Error()
	}
	return err.Error()
}

// fitsKeys refuses a location that a caller asks for where there could be no keys for it: better now than when it is written. Keys
// that are made for this are kept, and given with the answer.
func (c *Catalog) fitsKeys(ctx context.Context, location string, vend *bool) error {
	p, err := c.places.At(location)
	if err != nil || unsaid(vend) || p.Root.Access.Mode() != access.Vend {
		return err
	}
	if _, err = p.Root.Access.WithKeys(ctx, p.Location); errors.Is(err, access.ErrUnfit) {
		return api.Errorf(api.CodeInvalidInput, "location %q: keys for it alone cannot be made: %v", location, err)
	}
	return nil
}
