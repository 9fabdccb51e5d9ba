package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/report"
)

const apiVersion = cluster.APIVersion

// format is the value of --output: one of the formats that the verb has.
type format struct {
	value   string
	allowed []string
}

// newFormat takes the first of allowed as the default.
func newFormat(allowed ...string) *format { return &format{value: allowed[0], allowed: allowed} }

func (f *format) String() string { return f.value }
func (f *format) Type() string   { return strings.Join(f.allowed, "|") }

func (f *format) Set(v string) error {
	if !slices.Contains(f.allowed, v) {
		return usageError("must be one of %s", strings.Join(f.allowed, ", "))
	}
	f.value = v
	return nil
}

func (f *format) addFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "output format")
	offer(cmd, "output", f.allowed...)
}

// print writes document as YAML or JSON, or calls human for the other formats.
func (f *format) print(w io.Writer, document any, human func() error) error {
	switch f.value {
	case "yaml":
		return report.YAML(w, document)
	case "json":
		return report.JSON(w, document)
	default:
		return human()
	}
}
