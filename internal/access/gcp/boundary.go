package gcp

import (
	"fmt"
	"strings"

	"cloud.google.com/go/auth/credentials/downscope"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
)

// expressionMax is the most characters of a condition (Google, AccessBoundary).
const expressionMax = 2048

// The roles whose permissions a boundary lets through. What it does not let through nobody has, and what it does only who had it before.
const (
	reader = "inRole:roles/storage.objectViewer" // get and list objects
	writer = "inRole:roles/storage.objectUser"   // besides, create and remove them, also in parts
)

// boundary allows what the grant says in one directory and nothing else: one rule for its objects, and one for listing them, which is asked of the
// bucket. ErrUnfit where the directory is the whole bucket, or its name makes a condition too long.
func boundary(dir lance.Location, grant access.Grant) ([]downscope.AccessBoundaryRule, error) {
	if dir.Key() == "" {
		return nil, fmt.Errorf("%w: it is the whole bucket %s", access.ErrUnfit, dir.Authority)
	}
	role := reader
	if grant == access.ReadWrite {
		role = writer
	}
	const listed = "api.getAttribute('storage.googleapis.com/objectListPrefix', '')"
	rules := []downscope.AccessBoundaryRule{
		rule(dir, role, "resource.name.startsWith("+literal("projects/_/buckets/"+dir.Authority+"/objects/"+dir.Key()+"/")+")"),
		rule(dir, reader, listed+" == "+literal(dir.Key())+" || "+listed+".startsWith("+literal(dir.Key()+"/")+")"),
	}
	for _, r := range rules {
		if n := len([]rune(r.Condition.Expression)); n > expressionMax {
			return nil, fmt.Errorf("%w: the condition for %s has %d characters, and may have %d: choose a shorter location", access.ErrUnfit, dir, n, expressionMax)
		}
	}
	return rules, nil
}

func rule(dir lance.Location, role, expression string) downscope.AccessBoundaryRule {
	return downscope.AccessBoundaryRule{
		AvailableResource:    "//storage.googleapis.com/projects/_/buckets/" + dir.Authority,
		AvailablePermissions: []string{role},
		Condition:            &downscope.AvailabilityCondition{Expression: expression},
	}
}

// literal writes a text as CEL does: what could end it, or begin an escape, is escaped (case A13). Locations hold no control characters.
func literal(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
