package main

import (
	"fmt"
	"runtime/debug"
)

type versionCommand struct{}

// Run prints one line.
func (versionCommand) Run() error {
	fmt.Println("lancerest", version())
	return nil
}

// release is set by the linker for a release build.
var release = ""

// version is the release, or else what the Go toolchain recorded of the source.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}
