package local

// NameTemporaries makes s write to named temporary files, as it does where files without a name are not to be had.
func (s *Store) NameTemporaries() { s.anonymous = false }
