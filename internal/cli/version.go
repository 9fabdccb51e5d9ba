package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Build says what this program is.
type Build struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	Date      string `json:"date,omitempty"` // of the commit
	Modified  bool   `json:"modified,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// NewBuild completes version, as the linker set it, by what the Go toolchain
// recorded.
func NewBuild(version string) Build {
	b := Build{Version: version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// VersionKind is the kind of a VersionDocument.
const VersionKind = "Version"

// VersionDocument says what this program is.
type VersionDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Build
}

func newVersion(app *app) *cobra.Command {
	format := newFormat("table", "yaml", "json")
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print what this program is",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			return format.print(app.Out, VersionDocument{apiVersion, VersionKind, app.build}, func() error {
				_, err := fmt.Fprintf(app.Out, "dramigrate %s (%s, %s)\n", app.build.Version, app.build.GoVersion, app.build.Platform)
				return err
			})
		},
	}
	format.addFlag(cmd)
	return cmd
}
