package wholefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "plan.yaml")
	for _, want := range []string{"first", "second"} {
		if err := Write(name, text(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	broken := errors.New("broken")
	err := Write(name, func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return broken })
	if got, _ := os.ReadFile(name); !errors.Is(err, broken) || string(got) != "second" {
		t.Errorf("after %v the file has %q, want what it had", err, got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

// A link is somebody's choice of another place.
func TestWriteThrough(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("much longer than what comes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if err := Write(link, text("new")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "new" {
		t.Errorf("%q, %v", got, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
}

// The name that a person gave stands in the error, not that of the file in the making.
func TestErrorNamesTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "gone", "plan.yaml")
	err := Write(name, text("x"))
	if err == nil || !strings.Contains(err.Error(), name+":") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want one that names %s", err, name)
	}
}
