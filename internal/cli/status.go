package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/status"
)

func newStatus(a *app) *cobra.Command {
	format := newFormat("table", "json", "yaml")
	pool := &poolFlags{}
	cmd := &cobra.Command{
		Use:   "status [POOL]",
		Short: "Show where every node stands, who holds a pool, and what ran last",
		Long: `Show where every node with devices stands between the two mechanisms, and for each
pool its lock and its last run. Reads only; what may not be read is said and left out.`,
		ValidArgsFunction: completePools(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := pool.complete(args); err != nil {
				return err
			}
			return runStatus(cmd.Context(), a, pool, format)
		},
	}
	format.addFlag(cmd)
	a.addFrom(cmd)
	pool.addFlags(cmd)
	return cmd
}

func runStatus(ctx context.Context, a *app, pool *poolFlags, format *format) error {
	s, err := a.look(ctx, a.namespace)
	if err != nil {
		return err
	}
	pools := cluster.Pools(s.Nodes)
	if pool.given() {
		one, err := pool.find(s)
		if err != nil {
			return err
		}
		pools = []cluster.NodePool{one}
	}
	out := status.New(s, pools, a.records(s, pools), a.resource, a.driver, !pool.given())
	return format.print(a.Out, out, func() error { return report.Status(a.styled(a.Out), out) })
}
