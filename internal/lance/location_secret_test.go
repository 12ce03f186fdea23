package lance_test

import (
	"strings"
	"testing"

	"github.com/lancerest/lancerest/internal/lance"
)

// Messages go to callers and to the log: what a location may hold of secrets is not in them.
func TestParseLocationTellsNoSecrets(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{
		"https://user:S3CR3T@host/x", "https://host/x?sig=S3CR3T", "s3://AKIA:S3CR3T@bucket/x", "file:///x#S3CR3T", "ftp://S3CR3T:S3CR3T@h",
	} {
		_, err := lance.ParseLocation(uri)
		if err == nil {
			t.Errorf("%q is taken", uri)
		} else if strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%q: the error repeats the secret: %v", uri, err)
		}
	}
}
