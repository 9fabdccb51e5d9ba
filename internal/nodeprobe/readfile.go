package nodeprobe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"
)

// Bounds of what is read, so that a file that has gone wild does not end the pod. A
// container's entry in the device manager's checkpoint is some hundred bytes, and as
// many as its plugin likes to answer with.
const (
	maxFile    = 32 << 20 // bytes
	maxEntries = 20_000   // of a folder
)

// readFile reads a regular file of the node. It is opened without waiting, because a
// pipe in its place would hold the reader for ever.
func readFile(path string) (data []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that are read", path, info.Size(), maxFile)
	}
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		return nil, fmt.Errorf("%s has more than the %d bytes that are read", path, maxFile)
	}
	return data, err
}

// readFolder lists a folder of the node.
func readFolder(path string) (entries []fs.DirEntry, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	entries, err = f.ReadDir(maxEntries)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && len(entries) == maxEntries {
		return nil, fmt.Errorf("%s has %d entries or more, which are not read", path, maxEntries)
	}
	return entries, err
}

// fileReason says in one line why a file could not be read and what to look at.
func fileReason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("not found: %v: look at --kubelet-root, and at what is mounted here", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("no permission: %v: it is root's, and SELinux may keep a container from it", err)
	}
	return err.Error()
}

// parseReason says that a file was read and is not to be relied on. The kubelet writes
// its files in one move, so that one cut short is no passing state.
func parseReason(path string, err error) string {
	return fmt.Sprintf("%s: damaged, or of an unknown version: %v", path, err)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
