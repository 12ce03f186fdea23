package catalog

import (
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
)

// choose reads one of the specification's enum-like strings: the case and underscores do not matter (client contract, fact 84).
// Absent means the first of the choices. The error is of code InvalidInput.
func choose(field string, given *string, choices ...string) (string, error) {
	if given == nil {
		return choices[0], nil
	}
	for _, choice := range choices {
		if lance.Fold(*given) == lance.Fold(choice) {
			return choice, nil
		}
	}
	return "", api.Errorf(api.CodeInvalidInput, "%s %q is unknown: it must be one of %s", field, *given, strings.Join(choices, ", "))
}

// said reports whether an optional flag was given as true.
func said(flag *bool) bool { return flag != nil && *flag }

// mapMax bounds the bytes of the keys and values of one map that callers give: properties, metadata, context.
const mapMax = 64 << 10

// checkMap refuses a map that is larger than what is kept with tables and versions. The error is of code InvalidInput.
func checkMap(field string, m map[string]string) error {
	size := 0
	for key, value := range m {
		size += len(key) + len(value)
	}
	if size > mapMax {
		return api.Errorf(api.CodeInvalidInput, "%s holds %d bytes, and at most %d are allowed: keep larger things in the table itself", field, size, mapMax)
	}
	return nil
}

func ptr[T any](v T) *T { return &v }

// filled returns m, never nil: clients refuse null where a map belongs.
func filled(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
