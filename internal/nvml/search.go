package nvml

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// soname is the library's name in every driver since 2011.
const soname = "libnvidia-ml.so.1"

// DefaultRoots are the folders in which the vendors' driver installers leave a driver
// that is not the system's own: NVIDIA's driver container, and GKE's installer.
func DefaultRoots() []string { return []string{"/run/nvidia/driver", "/home/kubernetes/bin/nvidia"} }

// libDirs are where a driver root has its libraries: Debian's folders, Red Hat's and
// GKE's, each for the architecture of its distribution.
func libDirs() []string {
	return []string{
		"usr/lib64", "lib64",
		"usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu",
		"usr/lib/aarch64-linux-gnu", "lib/aarch64-linux-gnu",
		"usr/lib", "lib",
	}
}

// found is the loaded library and its file, or why there is none.
type found struct {
	driver driver
	path   string
	err    error
}

// find opens the library at the first place that has it. A place that has one which
// cannot be used ends the search: another's may be a remnant of a former driver.
func find(o Options, load func(string) (driver, error)) found {
	at := func(path string) found {
		d, err := load(path)
		return found{d, path, err}
	}
	if o.LibraryPath != "" {
		return at(o.LibraryPath)
	}
	var tried []string
	roots := o.Roots
	if len(roots) == 0 {
		// What a container runtime gives to the container, the dynamic linker finds.
		if f := at(soname); KindOf(f.err) != KindLibraryNotFound {
			return f
		}
		tried = append(tried, "the dynamic linker's folders")
		roots = DefaultRoots()
	}
	for _, root := range roots {
		for _, dir := range libDirs() {
			path, err := inRoot(root, filepath.Join(dir, soname))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return found{err: &Error{Kind: KindNoPermission, Detail: err.Error()}}
			}
			return at(path)
		}
		tried = append(tried, root)
	}
	return found{err: &Error{Kind: KindLibraryNotFound, Detail: fmt.Sprintf("no %s in %s", soname, strings.Join(tried, ", "))}}
}

// inRoot finds a file of a root that may be another system's, in which an absolute
// link means the root's own file.
func inRoot(root, name string) (string, error) {
	path := filepath.Join(root, name)
	target, err := os.Readlink(path)
	if err == nil && filepath.IsAbs(target) {
		path = filepath.Join(root, target)
	}
	_, err = os.Stat(path)
	return path, err
}
