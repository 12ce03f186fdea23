package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Secret says where a secret is, and never what it is: "env:NAME" for a variable of the environment, "file:PATH" for a file. It is
// printed as it is written. The zero value is no secret.
type Secret struct {
	from string
}

// UnmarshalText reads a reference. What is none is not repeated in the error: it may be the secret itself.
func (s *Secret) UnmarshalText(text []byte) error {
	kind, where, ok := strings.Cut(string(text), ":")
	if !ok || where == "" || kind != "env" && kind != "file" {
		return errors.New("a secret is not written here: give the place where it is, env:NAME or file:PATH")
	}
	s.from = string(text)
	return nil
}

// Given reports whether there is a reference.
func (s Secret) Given() bool { return s.from != "" }

// String is the reference.
func (s Secret) String() string { return s.from }

// Read returns the secret as it is now, without white space around it; "" for no reference. The error names the place: the variable
// is not set or the file cannot be read, or there is nothing in it.
func (s Secret) Read() (string, error) {
	kind, where, _ := strings.Cut(s.from, ":")
	var value string
	switch kind {
	case "env":
		value = os.Getenv(where)
	case "file":
		text, err := os.ReadFile(where)
		if err != nil {
			return "", fmt.Errorf("secret %s: %w", s.from, err)
		}
		value = string(text)
	default:
		return "", nil
	}
	if value = strings.TrimSpace(value); value == "" {
		return "", fmt.Errorf("secret %s: there is nothing", s.from)
	}
	return value, nil
}
