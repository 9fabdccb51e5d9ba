package report

import (
	"cmp"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/access"
	"github.com/dramigrate/dramigrate/internal/checks"
)

// Explain writes what a check is about.
func Explain(sheet Sheet, c checks.Check) error {
	d := newPage(sheet)
	d.para("", c.Code+"  "+c.Title, d.theme.title)
	d.heading("Why")
	d.para("  ", c.Why, lipgloss.NewStyle())
	d.heading("What to do")
	d.para("  ", c.Fix, lipgloss.NewStyle())
	d.heading("The check")
	d.para("  group    ", string(c.Group), lipgloss.NewStyle())
	d.para("  asked by ", strings.Join(askedBy(c), ", "), lipgloss.NewStyle())
	if len(c.Needs) > 0 {
		d.para("  reads    ", strings.Join(c.Needs, ", "), lipgloss.NewStyle())
	}
	d.para("  stops    ", stopsWords(c), lipgloss.NewStyle())
	d.heading("Sources")
	for _, s := range c.Sources {
		d.para("  - ", s, lipgloss.NewStyle())
	}
	return d.err
}

// askedBy names the operations of a check. The two sides of a move from one pool into
// another are one to a reader.
func askedBy(c checks.Check) []string {
	words := map[string]string{
		checks.Migrate:     access.Apply,
		checks.MigrateFrom: "migrate into another pool", checks.MigrateInto: "migrate into another pool",
		checks.RollbackFrom: "rollback from another pool", checks.RollbackInto: "rollback from another pool",
	}
	var out []string
	for _, op := range c.Operations {
		if name := cmp.Or(words[op], op); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func stopsWords(c checks.Check) string {
	switch {
	case c.Advises:
		return "nothing: it only advises"
	case c.Unskippable:
		return "a run; it cannot be skipped"
	default:
		return "a run, unless a person skips it: --skip " + c.Code + " --skip-reason TEXT"
	}
}

// Catalogue writes the codes and titles of all checks, group by group.
func Catalogue(sheet Sheet, sections []checks.Section) error {
	d := newPage(sheet)
	for i, s := range sections {
		if i > 0 {
			d.line("")
		}
		d.line(d.theme.title.Render(string(s.Group)))
		for _, c := range s.Checks {
			d.para("  "+c.Code+"  ", c.Title, lipgloss.NewStyle())
		}
	}
	return d.err
}
