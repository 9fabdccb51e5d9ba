package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/dramigrate/dramigrate/test/cluster/versions"
)

// etcdServer is the version of etcd's server module that every cluster runs.
const (
	etcdServer        = "go.etcd.io/etcd/server/v3"
	etcdServerVersion = "v3.7.0"
)

// Pin makes the module files of a Kubernetes version: its own requirements with
// each staging module replaced by the release of the same name, and etcd. It
// needs a few minutes of network when the modules are not yet downloaded.
func Pin(ctx context.Context, version string) (_ versions.Files, err error) {
	if !semver.IsValid(version) || semver.Major(version) != "v1" || semver.Canonical(version) != version {
		return versions.Files{}, fmt.Errorf("kubernetes version %q: want the form v1.MINOR.PATCH", version)
	}
	src, err := moduleDir(ctx, kubernetesModule, version)
	if err != nil {
		return versions.Files{}, err
	}
	upstream, err := os.ReadFile(filepath.Join(src, "go.mod"))
	if err != nil {
		return versions.Files{}, err
	}
	mod, err := moduleFile(upstream, version)
	if err != nil {
		return versions.Files{}, fmt.Errorf("kubernetes %s: %w", version, err)
	}
	sum, err := os.ReadFile(filepath.Join(src, "go.sum"))
	if err != nil {
		return versions.Files{}, err
	}
	dir, err := os.MkdirTemp("", "pin-")
	if err != nil {
		return versions.Files{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, text := range map[string][]byte{"go.mod": mod, "go.sum": sum, "imports.go": importsFile()} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return versions.Files{}, err
		}
	}
	if _, err := goOutput(ctx, dir, "mod", "tidy"); err != nil {
		return versions.Files{}, fmt.Errorf("kubernetes %s: %w", version, err)
	}
	var out versions.Files
	if out.GoMod, err = os.ReadFile(filepath.Join(dir, "go.mod")); err != nil {
		return versions.Files{}, err
	}
	if out.GoSum, err = os.ReadFile(filepath.Join(dir, "go.sum")); err != nil {
		return versions.Files{}, err
	}
	return out, nil
}

// moduleFile turns Kubernetes' own go.mod into one that builds its commands from
// published modules: v1.37.2's staging modules are published as v0.37.2.
func moduleFile(upstream []byte, version string) ([]byte, error) {
	in, err := modfile.Parse("go.mod", upstream, nil)
	if err != nil {
		return nil, err
	}
	published := "v0." + strings.TrimPrefix(version, "v1.")
	staging := map[string]bool{}
	out := new(modfile.File)
	if err := out.AddModuleStmt("kubernetes-build"); err != nil {
		return nil, err
	}
	if in.Go == nil {
		return nil, errors.New("go.mod has no go line")
	}
	if err := out.AddGoStmt(in.Go.Version); err != nil {
		return nil, err
	}
	for _, g := range in.Godebug {
		if err := out.AddGodebug(g.Key, g.Value); err != nil {
			return nil, err
		}
	}
	for _, r := range in.Replace {
		if !strings.HasPrefix(r.New.Path, "./staging/") {
			continue
		}
		staging[r.Old.Path] = true
		if err := out.AddReplace(r.Old.Path, "", r.Old.Path, published); err != nil {
			return nil, err
		}
	}
	if len(staging) == 0 {
		return nil, errors.New("go.mod replaces nothing with a staging folder")
	}
	required := map[string]string{kubernetesModule: version, etcdServer: etcdServerVersion}
	for _, r := range in.Require {
		v := r.Mod.Version
		switch {
		case staging[r.Mod.Path]:
			v = published
		case strings.HasPrefix(r.Mod.Path, "go.etcd.io/etcd/"):
			// etcd's modules are released together and require one another.
			v = etcdServerVersion
		}
		required[r.Mod.Path] = v
	}
	for path, v := range required {
		out.AddNewRequire(path, v, false)
	}
	out.SortBlocks()
	out.Cleanup()
	return out.Format()
}

// importsFile makes go mod tidy keep what the commands need.
func importsFile() []byte {
	var buf bytes.Buffer
	buf.WriteString("//go:build never\n\npackage imports\n\nimport (\n")
	for _, c := range stockCommands {
		fmt.Fprintf(&buf, "\t_ %q\n", c.pkg)
	}
	buf.WriteString(")\n")
	return buf.Bytes()
}
