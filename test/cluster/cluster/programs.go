package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dramigrate/dramigrate/test/cluster/internal/build"
)

// programs are the paths of what a cluster's nodes run. All are in the
// cluster's folder: the cache may be out of a node's sight, and is changed by
// builds while the cluster runs.
type programs struct {
	cluster    string
	kubelet    string
	commandDir string
}

func installPrograms(dir string, o Options, bin build.Binaries) (programs, error) {
	p := programs{
		cluster:    filepath.Join(dir, "bin", "cluster"),
		kubelet:    filepath.Join(dir, "bin", "kubelet"),
		commandDir: filepath.Join(dir, "bin", "commands"),
	}
	if err := os.MkdirAll(p.commandDir, 0o755); err != nil {
		return programs{}, err
	}
	if err := install(o.Program, p.cluster); err != nil {
		return programs{}, err
	}
	if len(o.Nodes) > 0 {
		if err := install(bin.Kubelet, p.kubelet); err != nil {
			return programs{}, err
		}
	}
	for _, name := range shippedCommands() {
		if err := install(p.cluster, filepath.Join(p.commandDir, name)); err != nil {
			return programs{}, err
		}
	}
	for name, path := range o.Commands {
		if filepath.Base(name) != name {
			return programs{}, fmt.Errorf("command %q: a name without a path is needed", name)
		}
		// Copied, as the caller may rebuild it while the cluster runs.
		if err := copyProgram(path, filepath.Join(p.commandDir, name)); err != nil {
			return programs{}, fmt.Errorf("command %s: %w", name, err)
		}
	}
	return p, nil
}

// install links a program that never changes in place, or copies it to another
// file system.
func install(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	return copyProgram(from, to)
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
