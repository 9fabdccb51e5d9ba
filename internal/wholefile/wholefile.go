// Package wholefile writes files whole or not at all: whoever reads one never sees a
// half of it, and what was there stays until the new one is complete.
package wholefile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write has write fill the file. What is there and is no file of its own, such as
// /dev/null or a link, is written through. Errors name the file.
func Write(name string, write func(io.Writer) error) error {
	err := replace(name, write)
	var path *fs.PathError
	if errors.As(err, &path) { // it names the file that was to become this one
		return &fs.PathError{Op: "write", Path: name, Err: path.Err}
	}
	return err
}

func replace(name string, write func(io.Writer) error) (err error) {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		return errors.Join(fill(f, write), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := fill(f, write); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("%s: %w", name, errors.Unwrap(err))
	}
	return nil
}

func fill(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriter(f)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}
