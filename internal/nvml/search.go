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

// find opens the library at the first place that has it. A place that has one which
// cannot be used ends the search: another's may be a remnant of a former driver.
func find(o Options, load func(string) (driver, error)) (driver, string, error) {
	if o.LibraryPath != "" {
		d, err := load(o.LibraryPath)
		return d, o.LibraryPath, err
	}
	var tried []string
	if len(o.Roots) == 0 {
		// What a container runtime gives to the container, the dynamic linker finds.
		d, err := load(soname)
		if KindOf(err) != KindLibraryNotFound {
			return d, soname, err
		}
		tried = append(tried, "the dynamic linker's folders")
		o.Roots = DefaultRoots()
	}
	for _, root := range o.Roots {
		for _, dir := range libDirs() {
			path, err := inRoot(root, filepath.Join(dir, soname))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, "", &Error{Kind: KindNoPermission, Detail: err.Error()}
			}
			d, err := load(path)
			return d, path, err
		}
		tried = append(tried, root)
	}
	return nil, "", &Error{Kind: KindLibraryNotFound, Detail: fmt.Sprintf("no %s in %s", soname, strings.Join(tried, ", "))}
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
