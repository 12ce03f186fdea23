//go:build unix

package faults_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/lancerest/lancerest/internal/lance"
)

// TestPowerFailure is TestKillUnderLoad with what a power failure does to files that were not synced: those that the state keeps are
// gone, empty, cut short or full of zeros when the next server starts.
func TestPowerFailure(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed of the damage: %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	damaged := 0
	where := place{data: newFolder(t).data}
	killUnderLoad(t, where, func() {
		for _, name := range unsynced(t, where.data) {
			if damage(t, rnd, name) {
				damaged++
			}
		}
		switch rnd.IntN(3) { // whoever looks, or mends, before the server starts takes nothing away from it
		case 0:
			_ = exec.Command(binary, "check", "--data", where.data).Run() // it finds much
		case 1:
			if out, err := exec.Command(binary, "check", "--data", where.data, "--repair").CombinedOutput(); err != nil {
				t.Errorf("lancerest check --repair: %v\n%s", err, out)
			}
		}
	})
	if damaged == 0 {
		t.Error("nothing was damaged in any round: the test shows nothing")
	}
	t.Logf("%d manifests were damaged", damaged)
}

// unsynced lists the files of the manifests that the state of a data directory keeps.
func unsynced(t *testing.T, data string) []string {
	t.Helper()
	out, err := exec.Command(binary, "export", "--data", data).Output()
	if err != nil {
		t.Fatalf("lancerest export: %v", err)
	}
	var names []string
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Table string
			Row   []json.RawMessage
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Table != "unsynced" {
			continue
		}
		var version int64
		var location string
		if err := errors.Join(json.Unmarshal(line.Row[3], &version), json.Unmarshal(line.Row[5], &location)); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		at, err := lance.ParseLocation(location)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, "/"+lance.ManifestKey(at.Key(), lance.Main, lance.VersionNumber(version), lance.SchemeV2))
	}
	return names
}

// damage does to a file what a power failure may, and reports whether that was anything.
func damage(t *testing.T, rnd *rand.Rand, name string) bool {
	t.Helper()
	was, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	switch rnd.IntN(5) {
	case 0:
		return false
	case 1:
		err = os.Remove(name)
	case 2:
		err = os.Truncate(name, 0)
	case 3:
		err = os.Truncate(name, was.Size()/2)
	default:
		err = os.WriteFile(name, make([]byte, was.Size()), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}
