package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/offline"
)

// offer gives the values of a flag to the shell; with none of them it keeps the shell
// from offering files. Flags that do not exist are a mistake of this program.
func offer(cmd *cobra.Command, flag string, values ...string) {
	offerFrom(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// offerFiles has the shell offer files of the given endings, or folders.
func offerFiles(cmd *cobra.Command, flag string, which cobra.ShellCompDirective, endings ...string) {
	offerFrom(cmd, flag, cobra.FixedCompletions(endings, which))
}

func offerFrom(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(fmt.Sprintf("completion of --%s: %v", flag, err))
	}
}

// addCompletion adds the completion verb, and to it what kubectl needs. Where nothing
// can be offered, the shell is kept from offering files.
func addCompletion(root *cobra.Command, streams Streams) {
	root.SetOut(streams.Out) // cobra's scripts go where the root's output goes now
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if _, offered := cmd.GetFlagCompletionFunc(f.Name); !offered && f.Value.Type() == "duration" {
				offer(cmd, f.Name)
			}
		})
		if cmd.Name() == "completion" {
			cmd.AddCommand(newKubectlShim(streams))
		}
	}
}

func newKubectlShim(streams Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl-shim",
		Short: "Print the script by which kubectl completes the plugin's command lines",
		Long: `Print a script that kubectl (1.26 and later) runs to complete the command lines of
'kubectl dramigrate'. It has to be in a folder of PATH under the name
` + completionName + `; krew does not install it. A link of that name to the program itself
does the same.`,
		Example:           "  dramigrate completion kubectl-shim > ~/.local/bin/" + completionName + "\n  chmod +x ~/.local/bin/" + completionName,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(streams.Out, kubectlShim)
			return err
		},
	}
}

// completionTimeout is how long a person waits for the shell after a tab.
const completionTimeout = 3 * time.Second

// completePools offers pools to the shell: those of the intent file, or the cluster's.
func completePools(a *app) cobra.CompletionFunc {
	offer := poolNames(a)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(cmd, args, typed)
	}
}

// completeInto offers the pools that POOL's workloads may move to.
func completeInto(a *app) cobra.CompletionFunc {
	offer := poolNames(a)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		names, directive := offer(cmd, nil, typed)
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), directive
	}
}

func poolNames(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if file := cmd.Flags().Lookup("config"); file != nil && file.Changed {
			c, err := loadConfig(file.Value.String())
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			if names := c.PoolNames(); len(names) > 0 {
				return names, cobra.ShellCompDirectiveNoFileComp
			}
		}
		if slices.Contains(a.from, offline.Stdin) { // the shell's input is the person's
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(contextOf(cmd), completionTimeout)
		defer cancel()
		s, err := a.look(ctx, cluster.LoadOptions{})
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
