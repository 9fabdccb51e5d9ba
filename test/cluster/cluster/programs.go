package cluster

import (
	"context"
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
	cluster string
	// kubelets by node.
	kubelets   map[string]string
	commandDir string
}

// buildKubelets returns the kubelet of each real node; those of the cluster's own
// version and build are at path.
func (o *Options) buildKubelets(ctx context.Context, builder build.Builder, path string) (map[string]string, error) {
	out := map[string]string{}
	for _, n := range o.Nodes {
		version, kubelet := n.KubeletVersion, n.Kubelet
		if version == "" {
			version = o.Version
		}
		if kubelet == "" {
			kubelet = o.Kubelet
		}
		out[n.Name] = path
		if version == o.Version && kubelet == o.Kubelet {
			continue
		}
		var err error
		if out[n.Name], err = builder.Kubelet(ctx, version, kubelet == KubeletQuick); err != nil {
			return nil, fmt.Errorf("node/%s: %w", n.Name, err)
		}
	}
	return out, nil
}

// installPrograms puts the programs into the cluster's folder; kubelets are those of
// the cache, by node.
func installPrograms(dir string, o Options, kubelets map[string]string) (programs, error) {
	p := programs{
		cluster:    filepath.Join(dir, "bin", "cluster"),
		kubelets:   map[string]string{},
		commandDir: filepath.Join(dir, "bin", "commands"),
	}
	if err := os.MkdirAll(p.commandDir, 0o755); err != nil {
		return programs{}, err
	}
	if err := install(o.Program, p.cluster); err != nil {
		return programs{}, err
	}
	for node, from := range kubelets {
		// The folder's name tells builds apart: v1.37.2-quick, v1.35.4-kubelet.
		to := filepath.Join(dir, "bin", filepath.Base(filepath.Dir(filepath.Dir(from))), "kubelet")
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return programs{}, err
		}
		if err := install(from, to); err != nil {
			return programs{}, err
		}
		p.kubelets[node] = to
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
