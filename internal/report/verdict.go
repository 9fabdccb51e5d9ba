package report

import (
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

// severities are all severities, the worst first.
func severities() []checks.Severity {
	return []checks.Severity{checks.Blocker, checks.Unknown, checks.Warning, checks.Info}
}

func bySeverity(list []checks.Finding) map[checks.Severity]int {
	count := map[checks.Severity]int{}
	for _, f := range list {
		count[f.Severity]++
	}
	return count
}

// worstFirst are the findings by severity, in their own order where it is equal.
func worstFirst(list []checks.Finding) []checks.Finding {
	out := make([]checks.Finding, 0, len(list))
	for _, s := range severities() {
		for _, f := range list {
			if f.Severity == s {
				out = append(out, f)
			}
		}
	}
	return out
}
