package build

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/dramigrate/dramigrate/test/cluster/versions"
)

// Kubelet returns the kubelet of a pinned version, building that alone if the cache
// does not have it: a node may be older than its control plane. With quick it is the
// one with shortened constants (see quickConstants).
func (b Builder) Kubelet(ctx context.Context, version string, quick bool) (string, error) {
	files, err := versions.Lookup(version)
	if err != nil {
		return "", err
	}
	t := target{
		version: version, dir: filepath.Join(b.Cache, "kubernetes", version+"-kubelet"), files: files,
		commands: []command{kubeletCommand},
	}
	if quick {
		t.dir = filepath.Join(b.Cache, "kubernetes", version+"-quick")
		t.constants = quickConstants()
	}
	if err := b.ensure(ctx, t); err != nil {
		return "", fmt.Errorf("build %s: %w", filepath.Base(t.dir), err)
	}
	return filepath.Join(t.dir, "bin", "kubelet"), nil
}
