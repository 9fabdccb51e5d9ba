package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/report"
)

// skipFlags are a person's decisions not to be stopped by findings.
type skipFlags struct {
	values []string
	reason string
}

func (f *skipFlags) addFlags(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringArrayVar(&f.values, "skip", nil, "CODE[=OBJECT]: do not be stopped by what this check finds, of this object alone if it is given; may be repeated; stands in the plan")
	s.StringVar(&f.reason, "skip-reason", "", "why --skip is right; stands in the plan")
	offerFrom(cmd, "skip", completeCodes)
	offer(cmd, "skip-reason")
}

// tellIdle says on stderr which skips are about nothing that was found.
func (a *app) tellIdle(skips []checks.FindingSkip, findings []checks.Finding) {
	for _, text := range checks.IdleSkips(skips, findings) {
		fmt.Fprintln(a.Err, "Note: "+report.Clean(text))
	}
}

func (f *skipFlags) parse() ([]checks.FindingSkip, error) {
	if len(f.values) == 0 && f.reason != "" {
		return nil, usageError("--skip-reason says why --skip is right: give --skip CODE as well, or leave --skip-reason out")
	}
	var out []checks.FindingSkip
	for _, v := range f.values {
		s, err := checks.ParseSkip(v)
		if err != nil {
			return nil, usageError("--skip: %w", err)
		}
		s.Reason = strings.TrimSpace(f.reason)
		if s.Reason == "" {
			return nil, usageError("--skip %s needs --skip-reason: it stands in the plan for those who review it", v)
		}
		out = append(out, s)
	}
	return out, nil
}
