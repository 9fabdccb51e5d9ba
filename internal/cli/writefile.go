package cli

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
)

// writeFile puts data into a file, whole or not at all: a pipeline that reads it never
// sees a half of it. What is there and is no file of its own, such as /dev/null or a
// link, is written through.
func writeFile(path string, data []byte) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, data, 0o644)
	}
	part := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%s", filepath.Base(path), rand.Text()))
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}
