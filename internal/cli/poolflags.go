package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/offline"
)

// poolFlags choose a pool: by the name that `pools` shows, or by a label selector.
type poolFlags struct {
	arg      string
	selector string
	name     string
}

func (f *poolFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "label selector of the pool's nodes, instead of POOL")
	cmd.Flags().StringVar(&f.name, "pool", "", "name for the pool of --selector; lock and journal go by it")
}

// complete takes POOL from the arguments.
func (f *poolFlags) complete(args []string) error {
	switch {
	case len(args) > 1:
		return usageError("one POOL is expected, not %d arguments", len(args))
	case len(args) == 1 && (f.selector != "" || f.name != ""):
		return usageError("give either POOL or --selector with --pool")
	case len(args) == 1:
		f.arg = args[0]
	case f.name != "" && f.selector == "":
		f.arg = f.name
	}
	return nil
}

// given says whether a pool was chosen at all.
func (f *poolFlags) given() bool { return f.arg != "" || f.selector != "" }

func (f *poolFlags) require() error {
	if !f.given() {
		return usageError("name the pool: POOL as `dramigrate pools` shows it, or --selector")
	}
	return nil
}

// find resolves the pool. A pool that does not exist is wrong usage: nothing about
// the cluster has failed.
func (f *poolFlags) find(s *cluster.Snapshot) (cluster.NodePool, error) {
	name := f.arg
	if f.selector != "" {
		name = f.name
	}
	pool, err := cluster.SelectPool(s, name, f.selector)
	if err != nil {
		return cluster.NodePool{}, usageError("%w", err)
	}
	return pool, nil
}

// completionTimeout is how long a person waits for the shell after a tab.
const completionTimeout = 3 * time.Second

// completePools offers the cluster's pools to the shell.
func completePools(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if slices.Contains(a.from, offline.Stdin) { // the shell's input is the person's
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(contextOf(cmd), completionTimeout)
		defer cancel()
		s, err := a.look(ctx, "")
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, p := range cluster.Pools(s.Nodes) {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func contextOf(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}
