package aws_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/access/aws"
	"github.com/lancerest/lancerest/internal/lance"
)

// TestPolicy holds the text of session policies: what goes wrong there opens other tables.
func TestPolicy(t *testing.T) {
	t.Parallel()
	const role = "arn:aws:iam::000000000000:role/vend"
	var got strings.Builder
	for _, c := range []struct {
		role, kms, path string
		grant           access.Grant
	}{
		{role, "", "/tables/0e15_t.lance", access.Read},
		{role, "", "/tables/0e15_t.lance", access.ReadWrite},
		{"arn:aws-us-gov:iam::1:role/x", "arn:aws-us-gov:kms:us-gov-west-1:1:key/k", "/t", access.Read},
		{role, "", "/a*b/?/$/${aws:username}/$*", access.Read},
		{role, "", "/\"q\" \\ <&> é 日 😀 \u2028", access.Read},
	} {
		text, err := aws.SessionPolicy(c.role, c.kms, lance.Location{Scheme: "s3", Authority: "lake", Path: c.path}, c.grant)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid([]byte(text)) {
			t.Errorf("%s: not JSON: %s", c.path, text)
		}
		got.WriteString(text + "\n")
	}
	want, err := os.ReadFile("testdata/policies.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}

// TestPolicyFits: a policy that the token service would not take is refused with its size, before anybody is asked.
func TestPolicyFits(t *testing.T) {
	t.Parallel()
	policy := func(path string) (string, error) {
		return aws.SessionPolicy("arn:aws:iam::000000000000:role/vend", "", lance.Location{Scheme: "s3", Authority: "lake", Path: path}, access.ReadWrite)
	}
	longest := ""
	for n := 1; ; n++ {
		text, err := policy("/" + strings.Repeat("x", n))
		if err != nil {
			if !errors.Is(err, access.ErrUnfit) || !strings.Contains(err.Error(), "2048") || !strings.Contains(err.Error(), "shorter location") {
				t.Errorf("%d characters: %v, want ErrUnfit that says the limit and what to do", n, err)
			}
			break
		}
		longest = text
	}
	if n := len(longest); n > 2048 || n < 2046-3 {
		t.Errorf("the longest policy has %d characters, want as many as go into 2048", n)
	}
	if _, err := policy(""); !errors.Is(err, access.ErrUnfit) || !strings.Contains(err.Error(), "whole bucket") {
		t.Errorf("a whole bucket: %v, want ErrUnfit", err)
	}
}
