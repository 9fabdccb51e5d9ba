package report

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/checks"
)

// findings writes what checks found, in their order: the most severe first.
func (d *page) findings(list []checks.Finding) {
	if len(list) == 0 {
		return
	}
	d.heading(fmt.Sprintf("Findings (%d)", len(list)))
	for _, f := range list {
		lead := fmt.Sprintf("  %-7s %s  ", strings.ToUpper(string(f.Severity)), f.Code)
		d.para(severity(f.Severity, d.theme).Render(lead), f.Object+": "+f.Message, lipgloss.NewStyle())
		if f.Remedy != "" {
			d.para("                  -> ", f.Remedy, d.theme.dim)
		}
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
