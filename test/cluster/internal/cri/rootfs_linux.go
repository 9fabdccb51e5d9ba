package cri

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// libraryPaths are the host's shared libraries, which a dynamically linked command needs. They are
// all that a container sees of the host besides its volumes.
var libraryPaths = [...]string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"}

// commandsPath is where a container finds the shipped commands; the other folders of programs lead
// there, so that a command may be named by any usual path.
const commandsPath = "/usr/local/bin"

// skeletonDirs and skeletonLinks are what a container's root has before anything is mounted in it.
var (
	skeletonDirs = [...]string{
		"/dev", "/etc", "/home", "/mnt", "/opt", "/proc", "/root", "/run", "/srv", "/sys", "/tmp",
		commandsPath, "/usr/share", "/var/cache", "/var/lib", "/var/log", "/var/tmp",
	}
	skeletonLinks = [...][2]string{
		{"/bin", commandsPath}, {"/sbin", commandsPath}, {"/usr/bin", commandsPath}, {"/usr/sbin", commandsPath},
		{"/var/run", "/run"},
	}
)

// buildRoot gives this process, which is alone in its mount namespace, the container's filesystem.
//
// What comes from outside is first taken as detached mount trees, then the old root is dropped, and
// only then are the trees attached: so a symbolic link in a volume or in the skeleton can never lead
// a mount out of the new root, and no mount point is ever made on the host outside a volume.
func buildRoot(input shimInput) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("detach mount propagation: %w", err)
	}
	image, err := imageTrees(input.CommandDir)
	if err != nil {
		return err
	}
	volumes, err := volumeTrees(input.Spec.Mounts)
	if err != nil {
		return err
	}
	if err := switchRoot(input.RootDir); err != nil {
		return err
	}
	for _, dir := range skeletonDirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
			return err
		}
	}
	for _, l := range skeletonLinks {
		if err := os.Symlink(l[1], l[0]); err != nil {
			return err
		}
	}
	for path, text := range input.Files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := kernelMounts(); err != nil {
		return err
	}
	if err := deviceNodes(input.Spec.Linux.Devices); err != nil {
		return err
	}
	for _, t := range append(image, volumes...) {
		if err := t.attach(); err != nil {
			return fmt.Errorf("mount %s: %w", t.target, err)
		}
	}
	return nil
}

// imageTrees are what an image would hold: the libraries and the commands.
func imageTrees(commandDir string) ([]tree, error) {
	var out []tree
	take := func(source, target string, options ...string) error {
		t, err := detach(specs.Mount{Type: "bind", Source: source, Destination: target, Options: options})
		out = append(out, t)
		return err
	}
	for _, path := range libraryPaths {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return nil, err
		case info.Mode()&os.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return nil, err
			}
			out = append(out, tree{target: path, kind: linkTree, data: link})
		default:
			if err := take(path, path, "rbind", "rro"); err != nil {
				return nil, err
			}
		}
	}
	commands, err := os.ReadDir(commandDir)
	if err != nil {
		return nil, fmt.Errorf("commands: %w", err)
	}
	for _, c := range commands {
		// One mount each, because a command may be a symbolic link to a file elsewhere.
		if err := take(filepath.Join(commandDir, c.Name()), filepath.Join(commandsPath, c.Name()), "bind", "ro"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// volumeTrees are the container's mounts, parents before children, else a parent would hide its child.
func volumeTrees(mounts []specs.Mount) ([]tree, error) {
	var out []tree
	for _, m := range mounts {
		if m.Type == "tmpfs" {
			out = append(out, tree{target: m.Destination, kind: tmpfsTree, data: strings.Join(m.Options, ",")})
			continue
		}
		t, err := detach(m)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	slices.SortStableFunc(out, func(a, b tree) int { return cmp.Compare(depth(a.target), depth(b.target)) })
	return out, nil
}

// switchRoot makes an empty tmpfs the root of this mount namespace.
func switchRoot(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount root: %w", err)
	}
	if err := unix.Chdir(dir); err != nil {
		return err
	}
	// Stacks the old root over the new one, at the same place, from where it is then taken off.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("drop the old root: %w", err)
	}
	return unix.Chdir("/")
}

// kernelMounts are the filesystems of the kernel, of this process's own namespaces.
func kernelMounts() error {
	mounts := []struct {
		fs, target, data string
		flags            uintptr
	}{
		{"proc", "/proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"sysfs", "/sys", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY},
		{"tmpfs", "/dev", "mode=0755", unix.MS_NOSUID},
		{"devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=0620", unix.MS_NOSUID | unix.MS_NOEXEC},
		{"tmpfs", "/dev/shm", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
	}
	for _, m := range mounts {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.fs, m.target, m.fs, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd",
		"stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, filepath.Join("/dev", name)); err != nil {
			return err
		}
	}
	return nil
}

func depth(path string) int { return strings.Count(filepath.Clean(path), "/") }
