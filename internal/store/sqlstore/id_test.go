package sqlstore_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/store/sqlstore"
)

// Ids are new, also while the clock stands still or goes backward. Where they spread, they grow at each place; otherwise all of them do.
func TestIDs(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for spread, ids := range map[bool]sqlstore.IDSource{false: sqlstore.GrowingIDs(), true: sqlstore.SpreadIDs()} {
		seen := map[lance.ObjectID]bool{}
		last := map[lance.ObjectID]lance.ObjectID{}
		for i := range 20_000 {
			id := ids.Next(begin.Add(time.Duration(i%3-1) * time.Millisecond))
			place := lance.ObjectID(0)
			if spread {
				place = id >> 47
			}
			if id <= 0 || seen[id] || id <= last[place] {
				t.Fatalf("spread %t: id %d after %d, seen before: %t", spread, id, last[place], seen[id])
			}
			seen[id], last[place] = true, id
		}
		if places := len(last); spread != (places > 10_000) {
			t.Errorf("spread %t: ids at %d places", spread, places)
		}
		before := ""
		firsts := map[string]bool{}
		for range 2000 {
			id := string(ids.Transaction(begin))
			if u, err := uuid.Parse(id); err != nil || u.String() != id || u.Variant() != uuid.RFC4122 || u.Version() != 7 && u.Version() != 8 {
				t.Fatalf("spread %t: %s is no UUID of version 7 or 8: %v", spread, id, err)
			}
			if !spread && id <= before {
				t.Errorf("%s came after %s", id, before)
			}
			before = id
			firsts[id[:2]] = true
		}
		if spread != (len(firsts) > 200) {
			t.Errorf("spread %t: transactions begin with %d different bytes", spread, len(firsts))
		}
	}
}
