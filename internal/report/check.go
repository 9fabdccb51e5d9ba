package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/access"
	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/words"
)

// CheckView is one way to write what the catalogue found.
type CheckView struct {
	// Name is the value of --output that asks for it.
	Name string
	// Styled says that it writes ANSI styles, which its writer has to reduce.
	Styled bool
	Write  func(Sheet, *checks.Report) error
}

// CheckViews are all ways to write it, the default first.
func CheckViews() []CheckView {
	return []CheckView{
		{Name: "table", Styled: true, Write: Check},
		{Name: "short", Write: alike(CheckShort)},
		{Name: "json", Write: func(s Sheet, r *checks.Report) error { return JSON(s, r) }},
		{Name: "yaml", Write: func(s Sheet, r *checks.Report) error { return YAML(s, r) }},
		{Name: "junit", Write: alike(CheckJUnit)},
		{Name: "sarif", Write: alike(CheckSARIF)},
		{Name: "github", Write: alike(CheckGitHub)},
		{Name: "markdown", Write: alike(CheckMarkdown)},
	}
}

// Check writes a report for people: the totals, then group by group what was found.
func Check(s Sheet, r *checks.Report) error {
	d := newPage(s)
	d.para("", checkHeadline(r), d.theme.title)
	d.para("  ", checkCounts(r), lipgloss.NewStyle())
	d.line("")
	groups := checkGroups(r)
	wide := 0
	for _, g := range groups {
		wide = max(wide, lipgloss.Width(string(g.name)))
	}
	for _, g := range groups {
		d.group(g, findingsOf(r, g), wide)
	}
	d.unknown(r.Unknown)
	return d.err
}

func (d *page) group(g checkGroup, found []checks.Finding, wide int) {
	d.line(d.theme.title.Render(fmt.Sprintf("%-*s", wide+2, g.name)) + groupVerdict(g, found))
	for _, o := range g.outcomes {
		if o.Result == checks.NotRun {
			lead := d.theme.warn.Render("  NOT RUN " + o.Code + "  ")
			d.para(lead, o.Title+": "+strings.Join(o.Missing, ", ")+" could not be read", lipgloss.NewStyle())
		}
	}
	for _, f := range found {
		d.finding(f)
	}
	if len(found) > 0 {
		d.line("")
	}
}

// CheckShort writes a line for each finding, for grep.
func CheckShort(w io.Writer, r *checks.Report) error {
	for _, f := range r.Findings {
		if _, err := fmt.Fprintf(w, "%s %s %s: %s\n", standing(f), f.Code, Clean(f.Object), Clean(message(f))); err != nil {
			return err
		}
	}
	return nil
}

// CheckGitHub writes the worst findings as annotations, and a line with the totals.
func CheckGitHub(w io.Writer, r *checks.Report) error {
	list := r.Findings
	for _, f := range list[:min(len(list), mostAnnotations)] {
		if err := findingAnnotation(w, f); err != nil {
			return err
		}
	}
	level := checks.Info
	if checks.Stops(list) {
		level = checks.Blocker
	} else if bySeverity(list)[checks.Warning] > 0 {
		level = checks.Warning
	}
	text := checkHeadline(r) + ": " + checkCounts(r)
	if rest := list[min(len(list), mostAnnotations):]; len(rest) > 0 {
		text += fmt.Sprintf("; %s not annotated: %s", words.Plural(len(rest), "more finding", "more findings"), countsOf(rest))
	}
	return annotation(w, level, "dramigrate check", text)
}

// CheckMarkdown writes a report for a comment on a change, within MarkdownBudget.
func CheckMarkdown(w io.Writer, r *checks.Report) error {
	m := &md{cut: true}
	head := fmt.Sprintf("**%s** — %s\n\n", m.text(checkHeadline(r)), checkCounts(r))
	if r.Source != nil {
		head += fmt.Sprintf("**Not read from a cluster:** %s\n\n", m.text(r.Source.Note))
	}
	groups := mdSection{one: "group", many: "groups", share: 6_000, open: "| Group | Checks | |\n|---|---|---|\n", close: "\n"}
	for _, g := range checkGroups(r) {
		groups.items = append(groups.items, fmt.Sprintf("| %s | %d | %s |\n", m.text(string(g.name)), len(g.outcomes), groupVerdict(g, findingsOf(r, g))))
	}
	text, left := pack([]mdSection{groups, m.findings(r.Findings)}, MarkdownBudget-runes(head)-leftOutRoom)
	if len(left) > 0 {
		head += fmt.Sprintf("> **Left out to stay within %s characters:** %s. All of it: `dramigrate check -o yaml`.\n\n", thousands(MarkdownBudget), strings.Join(left, "; "))
	}
	_, err := io.WriteString(w, head+text)
	return err
}

func checkHeadline(r *checks.Report) string {
	what := "every node with " + r.Resource
	if r.Pool != "" {
		what = "pool " + r.Pool
	}
	if r.Into != "" {
		what += " into pool " + r.Into
	}
	return fmt.Sprintf("Checks of %s for %s", what, strings.Join(verbsOf(r.Operations), " and "))
}

// verbsOf are the verbs that a person types for operations.
func verbsOf(operations []string) []string {
	out := slices.Clone(operations)
	for i := range out {
		if out[i] == checks.Migrate {
			out[i] = access.Apply
		}
	}
	return out
}

// checkCounts is the line that a person reads if she reads one.
func checkCounts(r *checks.Report) string {
	byResult := map[checks.Result]int{}
	for _, o := range r.Checks {
		byResult[o.Result]++
	}
	parts := []string{words.Plural(len(r.Checks), "check", "checks"), fmt.Sprintf("%d passed", byResult[checks.Passed])}
	if n := byResult[checks.NotRun]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d not run", n))
	}
	count := bySeverity(r.Findings)
	parts = append(parts, words.Plural(count[checks.Blocker], "blocker", "blockers"))
	if n := count[checks.Unknown]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown", n))
	}
	parts = append(parts, words.Plural(count[checks.Warning], "warning", "warnings"))
	if n := count[skipped]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", n))
	}
	return strings.Join(parts, ", ")
}

// checkGroup are the outcomes of one group of the catalogue.
type checkGroup struct {
	name     checks.Group
	outcomes []checks.Outcome
}

func checkGroups(r *checks.Report) []checkGroup {
	var out []checkGroup
	for _, o := range r.Checks {
		if n := len(out); n == 0 || out[n-1].name != o.Group {
			out = append(out, checkGroup{name: o.Group})
		}
		last := &out[len(out)-1]
		last.outcomes = append(last.outcomes, o)
	}
	return out
}

func findingsOf(r *checks.Report, g checkGroup) []checks.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f checks.Finding) bool {
		return !slices.ContainsFunc(g.outcomes, func(o checks.Outcome) bool { return o.Code == f.Code })
	})
}

// groupVerdict is a group in a few words. A group of which a check was not run has not
// passed.
func groupVerdict(g checkGroup, found []checks.Finding) string {
	blind := 0
	for _, o := range g.outcomes {
		if o.Result == checks.NotRun {
			blind++
		}
	}
	var parts []string
	if blind > 0 {
		parts = append(parts, fmt.Sprintf("%d not run", blind))
	}
	if s := countsOf(found); s != "" {
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return "passed"
	}
	return strings.Join(parts, ", ")
}
