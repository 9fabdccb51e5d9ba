// Package versions holds the pinned module files from which each supported
// Kubernetes version is built.
//
// The files carry the ending .txt because a folder with a go.mod would be a
// module of its own and could not be embedded.
package versions

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// Default is the Kubernetes version that a cluster runs unless told otherwise.
const Default = "v1.37.2"

//go:embed v*/*.txt
var pinned embed.FS

// Files are the module files of a build of one Kubernetes version.
type Files struct {
	GoMod []byte
	GoSum []byte
}

// Lookup returns the pinned files of a version such as "v1.37.2". The error of
// an unknown version lists the known ones.
func Lookup(version string) (Files, error) {
	mod, err := pinned.ReadFile(path.Join(version, "go.mod.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return Files{}, fmt.Errorf("kubernetes %s is not pinned (pinned: %s); pin it with: go run ./test/cluster pin %s",
			version, strings.Join(Pinned(), ", "), version)
	}
	if err != nil {
		return Files{}, fmt.Errorf("kubernetes %s: %w", version, err)
	}
	sum, err := pinned.ReadFile(path.Join(version, "go.sum.txt"))
	if err != nil {
		return Files{}, fmt.Errorf("kubernetes %s: %w", version, err)
	}
	return Files{GoMod: mod, GoSum: sum}, nil
}

// Pinned lists the pinned versions, oldest first.
func Pinned() []string {
	entries, err := pinned.ReadDir(".")
	if err != nil {
		return nil // an embedded root folder is always readable
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.SortFunc(out, semver.Compare)
	return out
}
