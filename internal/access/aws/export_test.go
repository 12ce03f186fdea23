package aws

import (
	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
)

// SessionPolicy is the policy for a directory, for tests that compare its text.
func SessionPolicy(roleARN, kmsKey string, dir lance.Location, grant access.Grant) (string, error) {
	return sessionPolicy(policyOptions{partition: partition(roleARN), dir: dir, grant: grant, kmsKey: kmsKey})
}
