package catalog

import (
	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
)

// checkProperties refuses properties that are too large, or say something of versions that nobody could understand. The error is of code
// InvalidInput.
func checkProperties(properties map[string]string) error {
	if err := checkMap("properties", properties); err != nil {
		return err
	}
	if word, said := properties[ManagedProperty]; said && lance.Fold(word) != "true" && lance.Fold(word) != "false" {
		return api.Errorf(api.CodeInvalidInput, "property %s is %q: it must be true or false", ManagedProperty, word)
	}
	return nil
}
