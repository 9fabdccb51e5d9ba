package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/report"
)

func newExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain CODE",
		Short: "Say what a check is about: why it matters, what to do, where it is written",
		Long: `Say what a check of the catalogue is about: what goes wrong and why, what to do about
it, and the KEP, source file or page of documentation where that can be verified. Needs
no cluster.`,
		Example: "  dramigrate explain DRM006",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeCodes(cmd, args, typed)
		},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("one CODE is expected, not %d arguments; `dramigrate check --list` shows them", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, ok := checks.Find(strings.ToUpper(args[0]))
			if !ok {
				return usageError("%w", unknownCode(args[0]))
			}
			return report.Explain(a.sheet(), c)
		},
	}
}

func unknownCode(code string) error {
	if code == "" {
		return errors.New("a code such as DRM006 is expected; `dramigrate check --list` shows them")
	}
	return fmt.Errorf("there is no check %q; `dramigrate check --list` shows them", code)
}
