//go:build !linux

package main

import "os"

// syncData is the whole fsync where the system has no smaller one.
func syncData(file *os.File) error { return file.Sync() }
