package local

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// maxStem is how much of an object's name goes into the name of its temporary file: with a hyphen and a UUID it must stay
// within the 255 bytes that file systems allow.
const maxStem = 200

// staged is a file whose bytes are on the disk and that has no final name yet.
type staged struct {
	dir  *directory
	file *os.File
	name string // temporary, "" if it has none (any more)
	stat unix.Stat_t
}

// stage writes data to a new file in dir. Where anonymous files are not to be had the file is called "<name>-<uuid>": Lance
// takes that for a staged manifest and its listings pass over it (client contract, fact 43). The caller must discard it.
func (s *Store) stage(dir *directory, name string, data []byte, anonymous bool) (*staged, error) {
	f, err := create(dir, name, anonymous)
	if err != nil {
		return nil, err
	}
	err = f.fill(data, s.stamp())
	if err == nil {
		// The sync comes before any name: with delayed allocation a name can reach the disk long before the bytes, and a crash would
		// leave an empty object. Its error says nothing about names, so it may not read as ENOENT.
		if err = f.file.Sync(); err != nil {
			err = fmt.Errorf("sync: %v", err)
		}
	}
	if err != nil {
		f.discard()
		return nil, err
	}
	return f, nil
}

func create(dir *directory, name string, anonymous bool) (*staged, error) {
	if anonymous {
		fd, err := openAnonymous(dir)
		if err == nil {
			return &staged{dir: dir, file: os.NewFile(uintptr(fd), name)}, nil
		}
		if !lacksAnonymous(err) {
			return nil, err
		}
	}
	temporary := strings.ToValidUTF8(name[:min(len(name), maxStem)], "") + "-" + uuid.NewString()
	fd, err := openat(dir.fd, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	return &staged{dir: dir, file: os.NewFile(uintptr(fd), temporary), name: temporary}, nil
}

// fill writes and stamps. Its errors say nothing about names, so none may read as ENOENT.
func (f *staged) fill(data []byte, at time.Time) error {
	if _, err := f.file.Write(data); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	fd := int(f.file.Fd())
	if err := again(func() error { return f.setTime(at) }); err != nil {
		return fmt.Errorf("set its time: %v", err)
	}
	if err := again(func() error { return unix.Fstat(fd, &f.stat) }); err != nil {
		return fmt.Errorf("look at it: %w", err)
	}
	return nil
}

// link gives the file its final name; EEXIST if that is taken, by whatever it is.
func (f *staged) link(name string) error {
	if f.name == "" {
		return linkAnonymous(f.file, f.dir, name)
	}
	return again(func() error { return unix.Linkat(f.dir.fd, f.name, f.dir.fd, name, 0) })
}

// rename gives the file its final name in place of the file that has it.
func (f *staged) rename(name string) error {
	err := again(func() error { return unix.Renameat(f.dir.fd, f.name, f.dir.fd, name) })
	if err == nil {
		f.name = ""
	}
	return err
}

// discard closes the file and removes its temporary name. It may be called again. After a crash that name stays, as a staged
// manifest that nobody committed, for the cleanup of such. An error here changes nothing about what was put.
func (f *staged) discard() {
	_ = f.file.Close()
	if f.name != "" {
		_ = f.dir.unlink(f.name)
		f.name = ""
	}
}
