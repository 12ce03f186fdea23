package catalog

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math"

	"github.com/lancerest/lancerest/api"
)

// pageMax is the most items of one page, and how many come where no limit is given: many clients never ask for a second page.
const pageMax = 10_000

// cursor is where a list goes on. Its scope names the list, so that a token of another list, or of another server's catalog, is
// told from a good one.
type cursor struct {
	Scope string `json:"s"`
	Space int64  `json:"n,omitempty"`
	Name  string `json:"a,omitempty"`
	After int64  `json:"v,omitempty"`
}

// pageLimit checks a limit. None, and 0, mean the most that a page may have; a larger one is cut to that.
func pageLimit(p api.Page) (int, error) {
	if p.Limit == nil || *p.Limit == 0 {
		return pageMax, nil
	}
	if *p.Limit < 0 || *p.Limit > math.MaxInt32 {
		return 0, api.Errorf(api.CodeInvalidInput, "limit %d: it must be from 1 to %d (a page has at most %d items), or 0 or absent for the most", *p.Limit, math.MaxInt32, pageMax)
	}
	return min(int(*p.Limit), pageMax), nil
}

// openCursor reads the token of the page before. No token, and an empty one, begin at the start.
func (c *Catalog) openCursor(p api.Page, scope string) (cursor, error) {
	if p.PageToken == nil || *p.PageToken == "" {
		return cursor{Scope: scope}, nil
	}
	var cur cursor
	raw, err := base64.RawURLEncoding.DecodeString(*p.PageToken)
	if err == nil && len(raw) > tokenMAC && hmac.Equal(raw[:tokenMAC], c.sign(raw[tokenMAC:])) {
		err = json.Unmarshal(raw[tokenMAC:], &cur)
	}
	if err != nil || cur.Scope != scope {
		return cursor{}, api.Errorf(api.CodeInvalidInput, "page_token is not one that this list gave: pass on the page_token of the answer before, or none to begin anew")
	}
	return cur, nil
}

// closeCursor returns the token for the page after, nil where this one is the last.
func (c *Catalog) closeCursor(cur cursor, more bool) (*string, error) {
	if !more {
		return nil, nil
	}
	text, err := json.Marshal(cur)
	if err != nil {
		return nil, err
	}
	token := base64.RawURLEncoding.EncodeToString(append(c.sign(text), text...))
	return &token, nil
}

const tokenMAC = 12

func (c *Catalog) sign(text []byte) []byte {
	mac := hmac.New(sha256.New, c.secret)
	mac.Write(text)
	return mac.Sum(nil)[:tokenMAC]
}
