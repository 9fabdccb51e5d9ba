package cli

import (
	"context"
	"io"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/status"
)

func newPools(a *app) *cobra.Command {
	format := newFormat("table", "wide", "json", "yaml", "name")
	cmd := &cobra.Command{
		Use:   "pools",
		Short: "List the node pools and by which mechanism their devices are handed out",
		Long: `List the node pools that well-known labels name (GKE, EKS, eksctl, AKS, Karpenter,
OpenShift), and for each how many of its nodes hand their devices out by the device
plugin, by neither mechanism, or by DRA; and the pools that only a run knows. Reads only.
Exit code 7: nodes may not be read, so nothing could be said.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runPools(cmd.Context(), a, format)
		},
	}
	format.addFlag(cmd)
	a.addFrom(cmd)
	return cmd
}

func runPools(ctx context.Context, a *app, format *format) error {
	s, err := a.look(ctx, cluster.LoadOptions{Namespace: a.namespace})
	if err != nil {
		return err
	}
	out := status.New(s, a.statusOptions(s))
	return format.print(a.Out, out, func() error {
		if format.value == "name" {
			return report.Names(a.Out, out)
		}
		return report.Pools(a.sheet(), out, format.value == "wide")
	})
}

// styled is a stream for people: it keeps of the styles what the terminal behind it
// can show, and nothing if there is none.
func (a *app) styled(w io.Writer) io.Writer {
	out := colorprofile.NewWriter(w, a.Env)
	// Whatever its value (no-color.org), and over a CLICOLOR_FORCE.
	if _, off := a.env("NO_COLOR"); off {
		out.Profile = min(out.Profile, colorprofile.ASCII)
	}
	return out
}

// sheet is stdout for people.
func (a *app) sheet() report.Sheet {
	return report.Sheet{Writer: a.styled(a.Out), Columns: a.columns(a.OutTTY)}
}
