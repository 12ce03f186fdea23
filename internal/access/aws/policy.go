package aws

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
)

// policyMax is the most characters of a session policy, as text (AWS, AssumeRole). What the service makes of it, packed, has a limit of its
// own, which it alone can tell.
const policyMax = 2048

type policyOptions struct {
	partition string // "aws", "aws-cn", "aws-us-gov"
	dir       lance.Location
	grant     access.Grant
	kmsKey    string
}

type policy struct {
	Version   string
	Statement []statement
}

type statement struct {
	Effect    string
	Action    []string
	Resource  string
	Condition map[string]map[string][]string `json:",omitempty"`
}

// sessionPolicy allows what the grant says in one directory and nothing else. ErrUnfit where the directory is the whole bucket, or its
// name makes the policy too long.
func sessionPolicy(o policyOptions) (string, error) {
	if o.dir.Key() == "" {
		return "", fmt.Errorf("%w: it is the whole bucket %s", access.ErrUnfit, o.dir.Authority)
	}
	bucket, prefix := "arn:"+o.partition+":s3:::"+o.dir.Authority, literal(o.dir.Key())
	objects := []string{"s3:GetObject"}
	if o.grant == access.ReadWrite {
		objects = append(objects, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
	}
	p := policy{Version: "2012-10-17", Statement: []statement{
		{Effect: "Allow", Action: objects, Resource: bucket + "/" + prefix + "/*"},
		{Effect: "Allow", Action: []string{"s3:ListBucket"}, Resource: bucket, Condition: map[string]map[string][]string{
			"StringLike": {"s3:prefix": {prefix, prefix + "/*"}},
		}},
	}}
	if o.kmsKey != "" {
		p.Statement = append(p.Statement, statement{Effect: "Allow", Action: []string{"kms:Decrypt", "kms:GenerateDataKey"}, Resource: o.kmsKey})
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(p); err != nil {
		return "", err
	}
	short := ascii(strings.TrimSuffix(text.String(), "\n"))
	if n := len(short); n > policyMax {
		return "", fmt.Errorf("%w: the policy for %s has %d characters, and may have %d: choose a shorter location", access.ErrUnfit, o.dir, n, policyMax)
	}
	return short, nil
}

// literal writes a name so that a policy takes it as it stands: its wildcards and variables are escaped (case A13). A dollar sign begins a
// variable only before a brace; elsewhere it stays, because only Amazon knows its escape. Servers that know none of them refuse the
// keys everything where a name holds "*", "?" or "${".
func literal(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == '*', r == '?', r == '$' && strings.ContainsAny(name[i+1:min(i+2, len(name))], "{*?"):
			b.WriteString("${" + string(r) + "}")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ascii escapes what the token service does not take in the text of a policy, which is most of Unicode.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch high, low := utf16.EncodeRune(r); {
		case r < 0x7f:
			b.WriteByte(byte(r))
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// partition is the part of Amazon's world that a role lies in.
func partition(roleARN string) string {
	if parts := strings.SplitN(roleARN, ":", 3); len(parts) == 3 && parts[1] != "" {
		return parts[1]
	}
	return "aws"
}
