package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/lancerest/lancerest/internal/app"
)

type serveCommand struct {
	Data     string `help:"Directory of the catalog's state (catalog.db) and, unless --root says otherwise, of the tables." default:"./lancerest-data" env:"LANCEREST_DATA" placeholder:"DIR"`
	Root     string `help:"Directory under which tables live; the default is tables inside the data directory." env:"LANCEREST_ROOT" placeholder:"DIR"`
	Listen   string `help:"Address to serve on." default:"127.0.0.1:2333" env:"LANCEREST_LISTEN" placeholder:"ADDR"`
	Insecure bool   `help:"Serve on an address that other machines can reach, although there is no authentication." env:"LANCEREST_INSECURE"`
	LogLevel string `help:"What to log: debug, info (a line a request), warn or error." enum:"debug,info,warn,error" default:"warn" env:"LANCEREST_LOG_LEVEL"`
}

// Run serves until the process is told to stop.
func (s *serveCommand) Run(ctx context.Context) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	a, err := app.New(ctx, app.Config{
		Data: s.Data, Root: s.Root, Listen: s.Listen, Insecure: s.Insecure, Version: version(), Logger: logger,
	})
	if err != nil {
		return err
	}
	fmt.Printf("lancerest %s listening on %s; tables live under %s\n", version(), a.URL(), a.Root())
	fmt.Printf("connect from Python: lancedb.connect_namespace(\"rest\", {\"uri\": %q})\n", a.URL())
	return errors.Join(a.Run(ctx), a.Close())
}
