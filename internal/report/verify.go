package report

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/status"
)

// Verification writes what was looked at: the class, then node by node, then the
// result in one line.
func Verification(s Sheet, v *status.Verification) error {
	d := newPage(s)
	d.para("", fmt.Sprintf("Pool %s: %s by driver %s", v.Pool, v.Resource, v.Driver), d.theme.title)
	for _, l := range v.Class {
		d.look(l)
	}
	for _, n := range v.Nodes {
		d.heading("node/" + Clean(n.Name))
		for _, l := range n.Looks {
			d.look(l)
		}
	}
	if len(v.Nodes) == 0 {
		d.line("No node of the pool has devices.")
	}
	d.findings(v.Findings)
	d.waiting(v.Waiting)
	d.line("")
	result := "Result: " + resultStyle(v.Result, d.theme).Render(resultWord(v.Result))
	if v.Result == status.OK && checks.Stops(v.Findings) {
		result += ", but for what the findings say"
	}
	d.line(result)
	return d.err
}

func (d *page) look(l status.Look) {
	text := l.What
	if l.Detail != "" {
		text += ": " + l.Detail
	}
	lead := fmt.Sprintf("  %-8s ", resultWord(l.Result))
	d.para(resultStyle(l.Result, d.theme).Render(lead), text, lipgloss.NewStyle())
}

func resultWord(r status.Result) string {
	if r == status.OK {
		return "ok"
	}
	return strings.ToUpper(string(r))
}

func resultStyle(r status.Result, t theme) lipgloss.Style {
	switch r {
	case status.OK:
		return t.good
	case status.Unknown:
		return t.warn
	default:
		return t.bad
	}
}
