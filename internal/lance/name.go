package lance

// leaf returns the last name of a path, or "".
func leaf(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}
