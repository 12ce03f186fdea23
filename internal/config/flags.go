package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
)

// Flags are what flags say of roots. They win over the file.
type Flags struct {
	Root        string   // where new tables go
	Allow       []string // further roots
	Credentials string   // mode of the root where new tables go
	STSRoleARN  string   // role for its keys; makes the mode vend where nothing else is said
}

// Combine returns the roots that a file, which may be zero, and flags say, the one where new tables go first. They have been checked.
func Combine(file File, flags Flags) ([]Root, error) {
	roots := slices.Clone(file.Roots)
	add := func(location string) int {
		at := slices.IndexFunc(roots, func(r Root) bool { return r.canonical() == (Root{Location: location}).canonical() })
		if at < 0 {
			at, roots = len(roots), append(roots, Root{Location: location})
		}
		return at
	}
	first := 0
	switch {
	case flags.Root != "":
		first = add(flags.Root)
	case file.Default != "":
		first = add(file.Default)
	case len(roots) == 0:
		return nil, errors.New("no root is named, neither by a flag nor by a configuration file")
	}
	for _, location := range flags.Allow {
		add(location)
	}
	roots[0], roots[first] = roots[first], roots[0]
	if flags.Credentials != "" {
		roots[0].Credentials = flags.Credentials
	}
	if flags.STSRoleARN != "" {
		roots[0].Vend.RoleARN = flags.STSRoleARN
	}
	if mode := access.Mode(flags.Credentials); flags.Credentials != "" && mode != access.Vend && flags.STSRoleARN == "" {
		roots[0].Vend = Vending{} // what the file says of keys has nothing to do with the mode of the flag
	}
	var errs []error
	for _, r := range roots {
		if err := r.check(); err != nil {
			errs = append(errs, fmt.Errorf("root %w", err))
		}
	}
	return roots, errors.Join(append(errs, oneSpelling(roots))...)
}

// oneSpelling refuses roots in one container of Azure under both of its schemes: locations in one would not be seen to overlap those in the
// other.
func oneSpelling(roots []Root) error {
	schemes := map[string]string{}
	for _, r := range roots {
		if r.store() != "az" {
			continue
		}
		loc, err := lance.ParseLocation(r.Location)
		if err != nil {
			continue // which was told
		}
		container, _, _ := strings.Cut(loc.Authority, "@")
		if other, ok := schemes[container]; ok && other != loc.Scheme {
			return fmt.Errorf("roots in container %s begin with %s:// and %s://: use one of the two", container, other, loc.Scheme)
		}
		schemes[container] = loc.Scheme
	}
	return nil
}
