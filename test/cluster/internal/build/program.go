package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dramigrate/dramigrate/test/cluster/internal/filelock"
)

const (
	clusterModule = "github.com/dramigrate/dramigrate/test/cluster"
	programName   = "cluster"
	// stagingFolder is where the program is built, temporaryPrefix begins the name
	// of a folder that is being filled.
	stagingFolder   = "staging"
	temporaryPrefix = "build-"
	// keptPrograms is how many past builds of the program stay in the cache.
	keptPrograms = 4
)

// Program compiles the test cluster's own program into the cache and returns
// its path. A change of its source gives another path, so that a running
// cluster keeps the program that it was started with.
func (b Builder) Program(ctx context.Context) (string, error) {
	dir, err := ModuleDir(ctx)
	if err != nil {
		return "", err
	}
	root := filepath.Join(b.Cache, "bin")
	lock, err := filelock.Take(ctx, filepath.Join(root, "lock"), nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Release() }()
	// Always the same file: the go command then links only what has changed.
	out := filepath.Join(root, stagingFolder, programName)
	start := time.Now()
	// The workspace's module versions are used, as by `go run ./test/cluster`, so
	// that both share the build cache; outside a workspace the module's own.
	if _, err := goWorkspaceOutput(ctx, dir, "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, "."); err != nil {
		return "", fmt.Errorf("build the cluster's program: %w", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		b.logf("built the cluster's program in %s", took.Round(time.Second))
	}
	sum, err := fileSum(out)
	if err != nil {
		return "", err
	}
	final := filepath.Join(root, sum[:16])
	if _, err := os.Stat(filepath.Join(final, programName)); err != nil {
		if err := publish(out, final); err != nil {
			return "", err
		}
	}
	now := time.Now()
	if err := os.Chtimes(final, now, now); err != nil {
		return "", err
	}
	return filepath.Join(final, programName), prunePrograms(root)
}

// ModuleDir is the folder of the test cluster's module, from which it can be
// built: where this source was compiled, or where the go command finds it.
func ModuleDir(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		dir := filepath.Dir(filepath.Dir(filepath.Dir(file)))
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	dir, err := goWorkspaceOutput(ctx, "", "list", "-m", "-f", "{{.Dir}}", clusterModule)
	if err != nil {
		return "", fmt.Errorf("find the source of %s: %w", clusterModule, err)
	}
	return dir, nil
}

// publish copies a program into a folder that comes to be in one step. It is a
// copy, as the go command may write into the file that it built before.
func publish(program, final string) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(final), temporaryPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	in, err := os.Open(program)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(filepath.Join(tmp, programName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close(), os.Chmod(tmp, 0o755)); err != nil {
		return err
	}
	return os.Rename(tmp, final)
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// prunePrograms removes the oldest builds. Clusters run from links of their own.
func prunePrograms(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	type built struct {
		path string
		used time.Time
	}
	var all []built
	for _, e := range entries {
		if !e.IsDir() || e.Name() == stagingFolder {
			continue
		}
		if strings.HasPrefix(e.Name(), temporaryPrefix) {
			// Left by a process that was killed: the lock is held.
			if err := os.RemoveAll(filepath.Join(root, e.Name())); err != nil {
				return err
			}
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		all = append(all, built{filepath.Join(root, e.Name()), info.ModTime()})
	}
	slices.SortFunc(all, func(a, b built) int { return b.used.Compare(a.used) })
	for i := keptPrograms; i < len(all); i++ {
		if err := os.RemoveAll(all[i].path); err != nil {
			return err
		}
	}
	return nil
}
