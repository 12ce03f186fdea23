package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// syncs counts how often a second the disk below dir takes 4 KiB more of one file for good: what no durable server can go beyond
// without answering several requests with one sync.
func syncs(dir string, duration time.Duration) (float64, error) {
	file, err := os.Create(filepath.Join(dir, "syncs"))
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	page := make([]byte, 4096)
	begin, n := time.Now(), 0
	for time.Since(begin) < duration {
		if _, err := file.Write(page); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		if err := syncData(file); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		n++
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}
