package report

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// findings writes what checks found, in their order: the most severe first.
func (d *page) findings(list []checks.Finding) {
	if len(list) == 0 {
		return
	}
	d.heading(fmt.Sprintf("Findings (%d)", len(list)))
	for _, f := range list {
		d.finding(f)
	}
}

func (d *page) finding(f checks.Finding) {
	lead := fmt.Sprintf("  %-7s %s  ", strings.ToUpper(string(standing(f))), f.Code)
	d.para(severity(standing(f), d.theme).Render(lead), f.Object+": "+message(f), lipgloss.NewStyle())
	if f.Remedy != "" {
		d.para("                  -> ", f.Remedy, d.theme.dim)
	}
}

func severity(s checks.Severity, t theme) lipgloss.Style {
	switch s {
	case checks.Blocker:
		return t.bad
	case checks.Unknown, checks.Warning:
		return t.warn
	default:
		return lipgloss.NewStyle()
	}
}

// unknown writes what the plan was made without.
func (d *page) unknown(list []cluster.Unknown) {
	if len(list) == 0 {
		return
	}
	d.heading(fmt.Sprintf("Not seen (%d)", len(list)))
	for _, u := range byReason(list) {
		lead := "  " + Clean(u.Parts[0]) + "  "
		if len(u.Parts) > 1 {
			d.para(d.theme.warn.Render("  "), strings.Join(u.Parts, ", ")+":", d.theme.warn)
			lead = "    "
		}
		d.para(d.theme.warn.Render(lead), u.Reason, lipgloss.NewStyle())
	}
}

// unseen are the parts that could not be read for one reason.
type unseen struct {
	Parts  []string
	Reason string
}

// byReason puts parts together that could not be read for the same reason, in the order
// of the first of each: files that were collected by hand lack many for one.
func byReason(list []cluster.Unknown) []unseen {
	var out []unseen
	for _, u := range list {
		at := slices.IndexFunc(out, func(s unseen) bool { return s.Reason == u.Reason })
		if at < 0 {
			out = append(out, unseen{nil, u.Reason})
			at = len(out) - 1
		}
		out[at].Parts = append(out[at].Parts, u.Part)
	}
	return out
}

// forecast writes what the run is expected to do, if that was computed.
func (d *page) forecast(f *plan.Forecast) {
	if f == nil {
		return
	}
	d.heading("Forecast")
	for _, sentence := range f.Summary {
		d.para("  - ", sentence, lipgloss.NewStyle())
	}
	for _, what := range f.Ignored {
		d.para("  - not taken into account: ", what, d.theme.dim)
	}
}
