package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dramigrate/dramigrate/internal/cluster"
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
	offer(cmd, "selector")
	offer(cmd, "pool")
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
	// As the labels name pools: it stands in commands that people copy.
	if bad := validation.IsValidLabelValue(f.name); len(bad) > 0 {
		return usageError("--pool %q: %s", f.name, bad[0])
	}
	return nil
}

// args choose the same pool on the command line of another verb.
func (f *poolFlags) args() []string {
	switch {
	case f.selector == "" && f.arg != "":
		return []string{f.arg}
	case f.selector == "":
		return nil
	case f.name == "":
		return []string{"--selector", f.selector}
	}
	return []string{"--selector", f.selector, "--pool", f.name}
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
	if err != nil && f.selector == "" && planFileEnding(name) {
		return cluster.NodePool{}, usageError("%w; nor is there a file %s with a plan", err, name)
	}
	if err != nil {
		return cluster.NodePool{}, usageError("%w", err)
	}
	return pool, nil
}
