package sqlstore

import (
	"encoding/json"
	"strings"
)

// DumpColumns returns the tables of a dump with their columns, as its header names them.
func DumpColumns(dump string) (map[string][]string, error) {
	line, _, _ := strings.Cut(dump, "\n")
	var h struct {
		Tables map[string][]string `json:"tables"`
	}
	err := json.Unmarshal([]byte(line), &h)
	return h.Tables, err
}
