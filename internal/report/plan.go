package report

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/words"
)

// Plan writes a plan for a reviewer: the totals first, then what speaks against it,
// then what changes. The whole of it, with every patch, is in its YAML.
func Plan(s Sheet, p *plan.Plan) error {
	d := newPage(s)
	d.para("", headline(p), d.theme.title)
	d.para("  ", totals(p), lipgloss.NewStyle())
	d.findings(p.Findings)
	d.unknown(p.Unknown)
	d.forecast(p.Forecast)
	d.batches(p)
	d.facts(p)
	d.restarts(p.Restarts)
	d.sharedSteps(p)
	d.evictions(p.Evictions)
	d.nodeSteps(p)
	return d.err
}

// headline is what the plan does, as its first line says it.
func headline(p *plan.Plan) string {
	switch {
	case p.Operation == plan.Migrate && p.Into != nil:
		return fmt.Sprintf("Plan: move the workloads of pool %s into pool %s: %s by driver %s", p.Pool.Name, p.Into.Name, p.Resource, p.Driver.Name)
	case p.Operation == plan.Rollback && p.Into != nil:
		return fmt.Sprintf("Plan: bring the workloads of pool %s back from pool %s: %s by the device plugin", p.Pool.Name, p.Into.Name, p.Resource)
	case p.Operation == plan.Migrate:
		return fmt.Sprintf("Plan: move pool %s to DRA: %s by driver %s", p.Pool.Name, p.Resource, p.Driver.Name)
	case p.Operation == plan.Rollback:
		return fmt.Sprintf("Plan: put pool %s back: %s by the device plugin", p.Pool.Name, p.Resource)
	case p.Operation == plan.Prepare:
		return fmt.Sprintf("Plan: prepare the cluster for DRA: %s by driver %s", p.Resource, p.Driver.Name)
	default:
		return "Plan: take back what prepare did to the cluster"
	}
}

// totals is the line that a reviewer reads if she reads one.
func totals(p *plan.Plan) string {
	if !p.Pending() {
		return "Nothing to do. " + counts(p)
	}
	return counts(p)
}

func counts(p *plan.Plan) string {
	var parts []string
	if p.Pool != nil {
		parts = append(parts, fmt.Sprintf("%s in %s", words.Plural(nodesIn(p), "node", "nodes"), words.Plural(len(p.Batches), "batch", "batches")))
		if n := len(p.Skipped); n > 0 {
			parts = append(parts, words.Plural(n, "node", "nodes")+" left alone")
		}
		parts = append(parts, words.Plural(len(p.Evictions), "pod", "pods")+" to evict", "no pod outside the pool restarted")
	} else {
		changes := 0
		for _, s := range p.Shared {
			changes += len(s.Changes)
		}
		parts = append(parts, words.Plural(changes, "change", "changes")+" of shared objects",
			words.Plural(len(p.Restarts), "pod", "pods")+" restarted or removed")
	}
	count := bySeverity(p.Findings)
	parts = append(parts, words.Plural(count[checks.Blocker], "blocker", "blockers"))
	if n := count[checks.Unknown]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown", n))
	}
	parts = append(parts, words.Plural(count[checks.Warning], "warning", "warnings"))
	return strings.Join(parts, ", ")
}

// page writes line after line and remembers the first error.
type page struct {
	sheet Sheet
	theme theme
	err   error
}

func newPage(s Sheet) *page { return &page{sheet: s, theme: newTheme()} }

func (d *page) line(s string) {
	if d.err == nil {
		_, d.err = fmt.Fprintln(d.sheet, s)
	}
}

func (d *page) heading(s string) {
	d.line("")
	d.line(d.theme.title.Render(s))
}

// para writes text behind a lead, wrapped below itself.
func (d *page) para(lead, text string, style lipgloss.Style) {
	for _, l := range hang(lead, Clean(text), d.sheet.prose(), style) {
		d.line(l)
	}
}

// table writes a table whose rows may be broken to fit the width.
func (d *page) table(t table) {
	t.width = d.sheet.tables(false)
	if d.err == nil {
		d.err = t.print(d.sheet, d.theme.dim)
	}
}

// listing writes a table that people look at on a terminal, and that scripts take apart
// by its lines where there is none.
func (d *page) listing(t table, wide bool) {
	t.width, t.whole = d.sheet.tables(wide), d.sheet.Columns == 0
	if d.err == nil {
		d.err = t.print(d.sheet, d.theme.title)
	}
}

func (d *page) restarts(list []plan.Restart) {
	if len(list) == 0 {
		return
	}
	d.heading(fmt.Sprintf("Pods restarted or removed (%d)", len(list)))
	t := table{header: []string{"NODE", "POD", "WHY"}, indent: "  "}
	for _, r := range list[:min(len(list), mostPods)] {
		t.add(Clean(r.Node), Clean(r.Pod), Clean(r.Why))
	}
	d.table(t)
	d.more(len(list) - mostPods)
}

// mostPods is how many pods a table lists.
const mostPods = 50

// more says that a list was cut, so that nobody takes it for all.
func (d *page) more(n int) {
	if n > 0 {
		d.line(fmt.Sprintf("  and %d more; -o yaml has all of them", n))
	}
}

func (d *page) batches(p *plan.Plan) {
	if p.Pool == nil {
		return
	}
	d.heading("Batches")
	for i, b := range p.Batches {
		d.para(fmt.Sprintf("  %-3d ", i+1), batchLead(p, b)+strings.Join(b.Nodes, ", "), lipgloss.NewStyle())
	}
	for _, s := range p.Skipped {
		d.para("  -   ", s.Node+" is left alone: "+s.Why, d.theme.dim)
	}
}

func (d *page) evictions(list []plan.Eviction) {
	if len(list) == 0 {
		return
	}
	d.heading(fmt.Sprintf("Pods to evict (%d)", len(list)))
	t := table{header: []string{"NODE", "POD", "WHY"}, indent: "  "}
	for _, e := range list[:min(len(list), mostPods)] {
		t.add(Clean(e.Node), Clean(e.Pod), Clean(evictionWhy(e)))
	}
	d.table(t)
	d.more(len(list) - mostPods)
}

// evictionWhy says why a pod is evicted, what makes it again, and what may hold it.
func evictionWhy(e plan.Eviction) string {
	why := e.Why
	if e.Owner.Kind == "" {
		why += "; has no controller"
	} else {
		why += "; of " + strings.ToLower(e.Owner.Kind) + "/" + e.Owner.Name
	}
	for _, b := range e.Budgets {
		why += "; budget " + b
	}
	return why
}
