package app

import (
	"github.com/lancerest/lancerest/internal/config"
)

// settle returns the settings of all roots, that of new tables first: what the configuration file says, and the flags, which win.
// Everything is checked before anything is opened.
func settle(c Config) ([]config.Root, error) {
	var file config.File
	if c.ConfigFile != "" {
		var err error
		if file, err = config.Load(c.ConfigFile); err != nil {
			return nil, err
		}
	}
	return config.Combine(file, config.Flags{Root: c.Root, Allow: c.Allow, Credentials: c.Credentials, STSRoleARN: c.STSRoleARN})
}
