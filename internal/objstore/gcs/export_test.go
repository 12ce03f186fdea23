package gcs

import "time"

// Hurry makes the pauses between tries so short that tests need not wait for them.
func (s *Store) Hurry() { s.pause(time.Millisecond, 2*time.Millisecond) }
