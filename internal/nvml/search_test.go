package nvml

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
		got := find(Options{Roots: []string{t.TempDir(), root}}, func(path string) (driver, error) {
			tried = append(tried, path)
			return nil, nil
		})
		if got.err != nil || got.path != want || !slices.Equal(tried, []string{want}) {
			t.Errorf("found %q after %v, %v; want %s at once", got.path, tried, got.err, want)
		}
	}
}

// The dynamic linker comes first, for what a container runtime put there, and then the
// roots where installers leave drivers.
func TestSearchWithoutOptions(t *testing.T) {
	if _, err := os.Stat("/run/nvidia/driver"); err == nil {
		t.Skip("this machine has a driver of its own")
	}
	err := find(Options{}, func(path string) (driver, error) {
		if path != soname {
			t.Errorf("tried %s", path)
		}
		return nil, &Error{Kind: KindLibraryNotFound}
	}).err
	for _, place := range []string{"the dynamic linker's folders", "/run/nvidia/driver", "/home/kubernetes/bin/nvidia"} {
		if KindOf(err) != KindLibraryNotFound || !strings.Contains(err.Error(), place) {
			t.Errorf("%v; want library-not-found that names %s", err, place)
		}
	}
}

// What the linker finds and refuses ends the search.
func TestSearchEndsAtAnUnusableLibrary(t *testing.T) {
	calls := 0
	err := find(Options{}, func(string) (driver, error) {
		calls++
		return nil, &Error{Kind: KindLibraryUnusable}
	}).err
	if KindOf(err) != KindLibraryUnusable || calls != 1 {
		t.Errorf("%v after %d tries; want library-unusable at the first", err, calls)
	}
}

// A file system that does not answer is no reason to hang.
func TestLoadingHangs(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	_, err := open(t.Context(), Options{StartTimeout: time.Millisecond}, func(string) (driver, error) {
		<-never
		return nil, &Error{Kind: KindLibraryNotFound}
	})
	if KindOf(err) != KindTimeout || !strings.Contains(err.Error(), "dlopen") {
		t.Errorf("%v; want a timeout of dlopen", err)
	}
}
