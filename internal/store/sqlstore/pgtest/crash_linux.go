package pgtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// children returns the processes that a process has started itself.
func children(pid int) []int {
	entries, _ := os.ReadDir("/proc") // without it there are none to be seen
	var pids []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child)) // it may be gone
		_, after, _ := strings.Cut(string(stat), ") ")              // behind its name, which may hold anything
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			pids = append(pids, child)
		}
	}
	return pids
}
