package lance

// Branch is the name of a branch. Main is the empty string: the wire's absent, "" and "main" all mean it.
type Branch string

// Main is the branch that every table has.
const Main Branch = ""

// String returns the branch's name, "main" for Main.
func (b Branch) String() string {
	if b == Main {
		return "main"
	}
	return string(b)
}
