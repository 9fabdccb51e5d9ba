// Package build compiles what a cluster runs: Kubernetes and etcd from their Go
// modules, and the test cluster's own program.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/dramigrate/dramigrate/test/cluster/internal/filelock"
	"github.com/dramigrate/dramigrate/test/cluster/versions"
)

// Binaries are the paths of one Kubernetes version's programs.
type Binaries struct {
	Etcd              string
	APIServer         string
	ControllerManager string
	Scheduler         string
	Kubelet           string
	Kubectl           string
}

// Builder builds into a cache folder that several processes may share.
type Builder struct {
	// Cache is the folder that holds everything built; see CacheDir.
	Cache string
	// Log receives progress, a line a step.
	Log io.Writer
}

// CacheDir is $DRAMIGRATE_CACHE or the user's cache folder's dramigrate.
func CacheDir() (string, error) {
	if dir := os.Getenv("DRAMIGRATE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder; set DRAMIGRATE_CACHE: %w", err)
	}
	return filepath.Join(dir, "dramigrate"), nil
}

// command is one program to build: its file name and its main package.
type command struct {
	name, pkg string
}

var (
	kubeletCommand = command{"kubelet", "k8s.io/kubernetes/cmd/kubelet"}
	stockCommands  = []command{
		{"etcd", "go.etcd.io/etcd/server/v3"},
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
		{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
		{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
		kubeletCommand,
	}
)

// Kubernetes returns the programs of a pinned version, building those that the
// cache does not have. With quickKubelet the kubelet is the one with shortened
// constants (see quickConstants); all else stays as released.
func (b Builder) Kubernetes(ctx context.Context, version string, quickKubelet bool) (Binaries, error) {
	files, err := versions.Lookup(version)
	if err != nil {
		return Binaries{}, err
	}
	stock := target{version: version, dir: filepath.Join(b.Cache, "kubernetes", version), files: files, commands: stockCommands}
	if err := b.ensure(ctx, stock); err != nil {
		return Binaries{}, fmt.Errorf("build kubernetes %s: %w", version, err)
	}
	bin := filepath.Join(stock.dir, "bin")
	out := Binaries{
		Etcd:              filepath.Join(bin, "etcd"),
		APIServer:         filepath.Join(bin, "kube-apiserver"),
		ControllerManager: filepath.Join(bin, "kube-controller-manager"),
		Scheduler:         filepath.Join(bin, "kube-scheduler"),
		Kubelet:           filepath.Join(bin, "kubelet"),
		Kubectl:           filepath.Join(bin, "kubectl"),
	}
	if !quickKubelet {
		return out, nil
	}
	out.Kubelet, err = b.Kubelet(ctx, version, true)
	return out, err
}

// target is one folder of the cache: src holds its module, bin what was built.
type target struct {
	version   string
	dir       string
	files     versions.Files
	commands  []command
	constants []constant
}

// stampFile marks a complete bin folder and says what it was built from.
const stampFile = ".stamp"

func (b Builder) ensure(ctx context.Context, t target) error {
	stamp, err := t.stamp(ctx)
	if err != nil {
		return err
	}
	if t.isBuilt(stamp) {
		return nil
	}
	lock, err := filelock.Take(ctx, filepath.Join(t.dir, "lock"), func() {
		b.logf("another process is building into %s; waiting for it", t.dir)
	})
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	if t.isBuilt(stamp) {
		return nil
	}
	return b.build(ctx, t, stamp)
}

func (t target) isBuilt(stamp string) bool {
	got, err := os.ReadFile(filepath.Join(t.dir, "bin", stampFile))
	return err == nil && string(got) == stamp
}

// stamp identifies everything that the binaries depend on.
func (t target) stamp(ctx context.Context) (string, error) {
	goVersion, err := goOutput(ctx, "", "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s/%s %s %s\n", runtime.GOOS, runtime.GOARCH, goVersion, strings.Join(t.linkFlags(), " "))
	h.Write(t.files.GoMod)
	h.Write(t.files.GoSum)
	fmt.Fprintf(h, "%v %v\n", t.commands, t.constants)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// linkFlags set what /version and the kubelet's node info report. Kubernetes'
// own hack/lib/version.sh sets the same variables.
func (t target) linkFlags() []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(t.version), "v"), ".")
	const pkg = "k8s.io/component-base/version."
	return []string{
		"-s", "-w",
		"-X", pkg + "gitVersion=" + t.version,
		"-X", pkg + "gitMajor=" + major,
		"-X", pkg + "gitMinor=" + minor,
		"-X", pkg + "gitTreeState=clean",
	}
}

func (b Builder) build(ctx context.Context, t target, stamp string) (err error) {
	src := filepath.Join(t.dir, "src")
	if err := t.writeSource(ctx, src); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(t.dir, "bin-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	b.logf("building %s %s from its Go modules; once per version, some minutes when nothing is cached", filepath.Base(t.dir), t.names())
	for i, c := range t.commands {
		ldflags := "-s -w"
		if strings.HasPrefix(c.pkg, "k8s.io/") {
			ldflags = strings.Join(t.linkFlags(), " ")
		}
		label := fmt.Sprintf("[%d/%d] %s", i+1, len(t.commands), c.name)
		args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", filepath.Join(tmp, c.name), c.pkg}
		if err := b.goBuild(ctx, src, label, args); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(tmp, stampFile), []byte(stamp), 0o644); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	// The stamp travels inside the folder, so the rename publishes both at once.
	// Programs that run from a replaced folder keep their files.
	bin := filepath.Join(t.dir, "bin")
	if err := os.RemoveAll(bin); err != nil {
		return err
	}
	return os.Rename(tmp, bin)
}

func (t target) names() string {
	var buf bytes.Buffer
	for i, c := range t.commands {
		if i > 0 {
			buf.WriteString(", ")
		}
		buf.WriteString(c.name)
	}
	return buf.String()
}

func (t target) writeSource(ctx context.Context, src string) error {
	if err := os.MkdirAll(src, 0o755); err != nil {
		return err
	}
	mod := t.files.GoMod
	if len(t.constants) > 0 {
		var err error
		if mod, err = redirectKubernetes(mod); err != nil {
			return err
		}
		if err := copyPatched(ctx, t.version, filepath.Join(src, kubernetesFolder), t.constants); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(src, "go.mod"), mod, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(src, "go.sum"), t.files.GoSum, 0o644)
}

func (b Builder) logf(format string, args ...any) {
	if b.Log != nil {
		fmt.Fprintf(b.Log, format+"\n", args...)
	}
}
