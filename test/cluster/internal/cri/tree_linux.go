package cri

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// tree is something that is going to be in a container's root.
type tree struct {
	target string
	kind   treeKind
	fd     int    // of a detached mount
	isDir  bool   // of a detached mount
	data   string // a tmpfs's mount options, a symbolic link's target
}

type treeKind int

const (
	detachedTree treeKind = iota
	tmpfsTree
	linkTree
)

// detach takes a bind mount's source without attaching it anywhere. It knows the options of OCI
// bind mounts that matter for a test workload, and ignores the rest (propagation is always private).
func detach(m specs.Mount) (tree, error) {
	t := tree{target: m.Destination}
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if !slices.Contains(m.Options, "bind") {
		flags |= unix.AT_RECURSIVE
	}
	var err error
	if t.fd, err = unix.OpenTree(unix.AT_FDCWD, m.Source, flags); err != nil {
		return t, fmt.Errorf("mount %s at %s: %w", m.Source, m.Destination, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(t.fd, &st); err != nil {
		return t, fmt.Errorf("mount %s at %s: %w", m.Source, m.Destination, err)
	}
	t.isDir = st.Mode&unix.S_IFMT == unix.S_IFDIR

	attrs := map[string]uint64{
		"ro": unix.MOUNT_ATTR_RDONLY, "rro": unix.MOUNT_ATTR_RDONLY, "nosuid": unix.MOUNT_ATTR_NOSUID,
		"nodev": unix.MOUNT_ATTR_NODEV, "noexec": unix.MOUNT_ATTR_NOEXEC,
	}
	for _, o := range m.Options {
		attr, ok := attrs[o]
		if !ok {
			continue
		}
		at := uint(unix.AT_EMPTY_PATH)
		if o == "rro" {
			at |= unix.AT_RECURSIVE
		}
		if err := unix.MountSetattr(t.fd, "", at, &unix.MountAttr{Attr_set: attr}); err != nil {
			return t, fmt.Errorf("mount %s at %s: option %s: %w", m.Source, m.Destination, o, err)
		}
	}
	return t, nil
}

// attach puts the tree in its place below the root of this process, making the mount point.
func (t tree) attach() error {
	switch t.kind {
	case linkTree:
		return os.Symlink(t.data, t.target)
	case tmpfsTree:
		if err := os.MkdirAll(t.target, 0o755); err != nil {
			return err
		}
		return unix.Mount("tmpfs", t.target, "tmpfs", 0, t.data)
	}
	defer unix.Close(t.fd)
	if err := mountPoint(t.target, t.isDir); err != nil {
		return err
	}
	return unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.target, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS)
}

func mountPoint(path string, isDir bool) error {
	if isDir {
		return os.MkdirAll(path, 0o755)
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// standardDevices are those that OCI runtimes give to every container.
var standardDevices = [...]specs.LinuxDevice{
	{Path: "/dev/null", Type: "c", Major: 1, Minor: 3},
	{Path: "/dev/zero", Type: "c", Major: 1, Minor: 5},
	{Path: "/dev/full", Type: "c", Major: 1, Minor: 7},
	{Path: "/dev/random", Type: "c", Major: 1, Minor: 8},
	{Path: "/dev/urandom", Type: "c", Major: 1, Minor: 9},
	{Path: "/dev/tty", Type: "c", Major: 5, Minor: 0},
}

// deviceNodes makes the standard devices and those of the spec. Where the kernel forbids mknod, an
// empty file stands for a device of the spec, so that a workload still finds it by name.
func deviceNodes(extra []specs.LinuxDevice) error {
	for _, d := range append(standardDevices[:], extra...) {
		if err := deviceNode(d); err != nil {
			return fmt.Errorf("device %s: %w", d.Path, err)
		}
	}
	return nil
}

func deviceNode(d specs.LinuxDevice) error {
	kinds := map[string]uint32{"c": unix.S_IFCHR, "u": unix.S_IFCHR, "b": unix.S_IFBLK, "p": unix.S_IFIFO}
	kind, ok := kinds[d.Type]
	if !ok {
		return fmt.Errorf("unknown type %q", d.Type)
	}
	mode := os.FileMode(0o666)
	if d.FileMode != nil {
		mode = *d.FileMode & os.ModePerm
	}
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o755); err != nil {
		return err
	}
	err := unix.Mknod(d.Path, kind|uint32(mode), int(unix.Mkdev(uint32(d.Major), uint32(d.Minor))))
	if errors.Is(err, unix.EPERM) {
		return mountPoint(d.Path, false)
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(d.Path, mode); err != nil { // the umask took its part
		return err
	}
	if d.UID != nil && d.GID != nil {
		return os.Chown(d.Path, int(*d.UID), int(*d.GID))
	}
	return nil
}
