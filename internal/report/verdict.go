package report

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// verdict is what a plan comes to, in one word or two.
type verdict string

// The verdicts. A blocked or unknown plan is not run.
const (
	isBlocked verdict = "blocked"
	isUnseen  verdict = "unknown"
	isNothing verdict = "nothing to do"
	isCareful verdict = "ready, with warnings"
	isReady   verdict = "ready"
)

func verdictOf(p *plan.Plan) verdict {
	count := bySeverity(p.Findings)
	switch {
	case count[checks.Blocker] > 0:
		return isBlocked
	case count[checks.Unknown] > 0:
		return isUnseen
	case !p.Pending():
		return isNothing
	case count[checks.Warning] > 0:
		return isCareful
	default:
		return isReady
	}
}

// skipped is how a finding stands that a person has decided about.
const skipped checks.Severity = "skipped"

// standing is the severity of a finding, or skipped.
func standing(f checks.Finding) checks.Severity {
	if f.Skipped != "" {
		return skipped
	}
	return f.Severity
}

// standings are all of them, the worst first.
func standings() []checks.Severity { return append(checks.Severities(), skipped) }

// message is what a finding says, and why it was skipped if it was.
func message(f checks.Finding) string {
	if f.Skipped == "" {
		return f.Message
	}
	return fmt.Sprintf("%s (%s, skipped: %s)", f.Message, f.Severity, f.Skipped)
}

func bySeverity(list []checks.Finding) map[checks.Severity]int {
	count := map[checks.Severity]int{}
	for _, f := range list {
		count[standing(f)]++
	}
	return count
}

// worstFirst are the findings by severity, in their own order where it is equal.
func worstFirst(list []checks.Finding) []checks.Finding {
	out := make([]checks.Finding, 0, len(list))
	for _, s := range standings() {
		for _, f := range list {
			if standing(f) == s {
				out = append(out, f)
			}
		}
	}
	return out
}
