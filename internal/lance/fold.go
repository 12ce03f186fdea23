package lance

import "strings"

// Fold returns a word in the form by which words are compared: neither case nor underscores matter in those that requests choose
// from, nor in the values of properties that the catalog reads (client contract, fact 84).
func Fold(word string) string { return strings.ToLower(strings.ReplaceAll(word, "_", "")) }
