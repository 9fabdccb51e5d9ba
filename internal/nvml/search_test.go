package nvml

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSearchInARoot(t *testing.T) {
	for _, dir := range []string{
		"usr/lib64",                 // Red Hat's drivers, NVIDIA's driver container on them
		"usr/lib/x86_64-linux-gnu",  // Debian's and Ubuntu's
		"usr/lib/aarch64-linux-gnu", // the same on Arm
		"lib64",                     // GKE's installer: /home/kubernetes/bin/nvidia/lib64
		"usr/lib",                   // Flatcar's, Arch's
	} {
		root := t.TempDir()
		want := filepath.Join(root, dir, soname)
		if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(want, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		var tried []string
		_, got, err := find(Options{Roots: []string{t.TempDir(), root}}, func(path string) (driver, error) {
			tried = append(tried, path)
			return nil, nil
		})
		if err != nil || got != want || !slices.Equal(tried, []string{want}) {
			t.Errorf("found %q after %v, %v; want %s at once", got, tried, err, want)
		}
	}
}

// The dynamic linker comes first, for what a container runtime put there, and then the
// roots where installers leave drivers.
func TestSearchWithoutOptions(t *testing.T) {
	if _, err := os.Stat("/run/nvidia/driver"); err == nil {
		t.Skip("this machine has a driver of its own")
	}
	_, _, err := find(Options{}, func(path string) (driver, error) {
		if path != soname {
			t.Errorf("tried %s", path)
		}
		return nil, &Error{Kind: KindLibraryNotFound}
	})
	for _, place := range []string{"the dynamic linker's folders", "/run/nvidia/driver", "/home/kubernetes/bin/nvidia"} {
		if KindOf(err) != KindLibraryNotFound || !strings.Contains(err.Error(), place) {
			t.Errorf("%v; want library-not-found that names %s", err, place)
		}
	}
}

// What the linker finds and refuses ends the search.
func TestSearchEndsAtAnUnusableLibrary(t *testing.T) {
	calls := 0
	_, _, err := find(Options{}, func(string) (driver, error) {
		calls++
		return nil, &Error{Kind: KindLibraryUnusable}
	})
	if KindOf(err) != KindLibraryUnusable || calls != 1 {
		t.Errorf("%v after %d tries; want library-unusable at the first", err, calls)
	}
}
