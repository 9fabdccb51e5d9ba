package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	kubernetesFolder = "kubernetes"
)

// constant is one line of Kubernetes' source that a quick kubelet has different.
type constant struct {
	File, Old, New string
}

// The waits of a quick kubelet.
const (
	QuickEndpointGrace = 20 * time.Second
	QuickWipingDelay   = 3 * time.Second
)

// quickConstants shorten two waits of the kubelet so that a test shows in
// seconds what takes minutes; nothing else of the kubelet's behaviour changes.
//
//   - endpointStopGracePeriod: how long a stopped device plugin's resource stays
//     in the node's capacity (5 min as released).
//   - defaultWipingDelay: how long a gone DRA driver's ResourceSlices stay
//     (30 s as released).
func quickConstants() []constant {
	return []constant{
		{
			File: "pkg/kubelet/cm/devicemanager/types.go",
			Old:  "const endpointStopGracePeriod = time.Duration(5) * time.Minute\n",
			New:  fmt.Sprintf("const endpointStopGracePeriod = time.Duration(%d) * time.Second\n", int(QuickEndpointGrace.Seconds())),
		},
		{
			File: "pkg/kubelet/cm/dra/manager.go",
			Old:  "const defaultWipingDelay = 30 * time.Second\n",
			New:  fmt.Sprintf("const defaultWipingDelay = %d * time.Second\n", int(QuickWipingDelay.Seconds())),
		},
	}
}

// patch replaces each constant in the tree at root. It is an error if a line is
// not there exactly once: a silently unpatched kubelet would make tests that
// rely on the short waits fail far from the cause.
func patch(root string, constants []constant) error {
	for _, c := range constants {
		path := filepath.Join(root, filepath.FromSlash(c.File))
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("patch %s: %w", c.File, err)
		}
		if n := bytes.Count(text, []byte(c.Old)); n != 1 {
			return fmt.Errorf("patch %s: the line %q occurs %d times, want once", c.File, strings.TrimSpace(c.Old), n)
		}
		text = bytes.Replace(text, []byte(c.Old), []byte(c.New), 1)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("patch %s: %w", c.File, err)
		}
	}
	return nil
}

// redirectKubernetes points k8s.io/kubernetes at the patched copy.
func redirectKubernetes(mod []byte) ([]byte, error) {
	f, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		return nil, err
	}
	if err := f.AddReplace(kubernetesModule, "", "./"+kubernetesFolder, ""); err != nil {
		return nil, err
	}
	return f.Format()
}

// copyPatched copies Kubernetes' source out of the module cache, whose files
// may be neither changed nor overlaid, and patches the copy.
func copyPatched(ctx context.Context, version, dst string, constants []constant) error {
	src, err := moduleDir(ctx, kubernetesModule, version)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dst); err != nil {
		return err
	}
	if err := copySource(src, dst); err != nil {
		return fmt.Errorf("copy %s: %w", kubernetesModule, err)
	}
	return patch(dst, constants)
}

// moduleDir is the folder of a module in the module cache, downloaded if need be.
func moduleDir(ctx context.Context, module, version string) (string, error) {
	out, err := goOutput(ctx, os.TempDir(), "mod", "download", "-json", module+"@"+version)
	if err != nil {
		return "", err
	}
	var info struct{ Dir, Error string }
	if err := json.Unmarshal([]byte(out), &info); err != nil {
		return "", fmt.Errorf("module %s@%s: %w", module, version, err)
	}
	if info.Error != "" {
		return "", fmt.Errorf("module %s@%s: %w", module, version, errors.New(info.Error))
	}
	return info.Dir, nil
}

// unneeded are top-level folders that the kubelet's packages do not import.
var unneeded = []string{"CHANGELOG", "LICENSES", "api", "build", "cluster", "docs", "hack", "logo", "test", "vendor"}

func copySource(src, dst string) error {
	return filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		target := filepath.Join(dst, rel)
		switch {
		case d.IsDir() && slices.Contains(unneeded, rel):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !d.Type().IsRegular() || strings.HasSuffix(rel, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
}
