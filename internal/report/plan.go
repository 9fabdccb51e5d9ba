package report

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// Plan writes a plan for a reviewer: the totals first, then what speaks against it,
// then what changes. The whole of it, with every patch, is in its YAML.
func Plan(w io.Writer, p *plan.Plan) error {
	d := &page{w: w, theme: newTheme()}
	d.line(d.theme.title.Render(headline(p)))
	d.para("  ", totals(p), lipgloss.NewStyle())
	d.facts(p)
	d.findings(p.Findings)
	d.unknown(p.Unknown)
	d.forecast(p.Forecast)
	d.restarts(p.Restarts)
	d.sharedSteps(p)
	d.batches(p)
	d.evictions(p.Evictions)
	d.nodeSteps(p)
	return d.err
}

func headline(p *plan.Plan) string {
	switch p.Operation {
	case plan.Migrate:
		return fmt.Sprintf("Plan: move pool %s to DRA: %s by driver %s", Clean(p.Pool.Name), Clean(p.Resource), Clean(p.Driver.Name))
	case plan.Rollback:
		return fmt.Sprintf("Plan: put pool %s back: %s by the device plugin", Clean(p.Pool.Name), Clean(p.Resource))
	case plan.Prepare:
		return fmt.Sprintf("Plan: prepare the cluster for DRA: %s by driver %s", Clean(p.Resource), Clean(p.Driver.Name))
	default:
		return "Plan: take back what prepare did to the cluster"
	}
}

// totals is the line that a reviewer reads if she reads one.
func totals(p *plan.Plan) string {
	var parts []string
	if p.Pool != nil {
		parts = append(parts, fmt.Sprintf("%s in %s", plural(nodesIn(p), "node", "nodes"), plural(len(p.Batches), "batch", "batches")))
		if n := len(p.Skipped); n > 0 {
			parts = append(parts, plural(n, "node", "nodes")+" left alone")
		}
		parts = append(parts, plural(len(p.Evictions), "pod", "pods")+" to evict", "no pod outside the pool restarted")
	} else {
		changes := 0
		for _, s := range p.Shared {
			changes += len(s.Changes)
		}
		parts = append(parts, plural(changes, "change", "changes")+" of shared objects",
			plural(len(p.Restarts), "pod", "pods")+" restarted or removed")
	}
	count := map[checks.Severity]int{}
	for _, f := range p.Findings {
		count[f.Severity]++
	}
	parts = append(parts, plural(count[checks.Blocker], "blocker", "blockers"))
	if n := count[checks.Unknown]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown", n))
	}
	parts = append(parts, plural(count[checks.Warning], "warning", "warnings"))
	if !p.Pending() {
		return "Nothing to do. " + strings.Join(parts, ", ")
	}
	return strings.Join(parts, ", ")
}

// page writes line after line and remembers the first error.
type page struct {
	w     io.Writer
	theme theme
	err   error
}

func (d *page) line(s string) {
	if d.err == nil {
		_, d.err = fmt.Fprintln(d.w, s)
	}
}

func (d *page) heading(s string) {
	d.line("")
	d.line(d.theme.title.Render(s))
}

// para writes text behind a lead, wrapped below itself.
func (d *page) para(lead, text string, style lipgloss.Style) {
	column := lipgloss.Width(lead)
	lines := wrap(Clean(text), Width-column)
	for i, l := range lines {
		if i > 0 {
			lead = strings.Repeat(" ", column)
		}
		d.line(lead + style.Render(l))
	}
}

func (d *page) table(t table) {
	if d.err == nil {
		d.err = t.print(d.w, d.theme.dim)
	}
}

// facts say what the plan found and is made with.
func (d *page) facts(p *plan.Plan) {
	plain := lipgloss.NewStyle()
	d.line("")
	d.para("  plugin    ", objects(p.Plugins)+"; resources "+strings.Join(p.Resources, ", "), plain)
	driver := objects(p.Driver.DaemonSets)
	if p.Driver.Source != "" {
		driver += "; " + p.Driver.Source
	}
	d.para("  driver    ", p.Driver.Name+": "+driver, plain)
	d.para("  gate      ", p.Gate.Name+": "+p.Gate.Why, plain)
	if p.Class != nil {
		how := "is there already and is used"
		if p.Class.Action == plan.Create {
			how = "is created by the first node that needs it"
		}
		d.para("  class     ", fmt.Sprintf("DeviceClass %s %s", p.Class.Name, how), plain)
	}
	if p.Claims != nil {
		d.para("  claims    ", fmt.Sprintf("%s added by the pods that run now, at most %d: one for each pod with %s",
			plural(p.Claims.Now, "ResourceClaim", "ResourceClaims"), p.Claims.AtMost, p.Resource), plain)
	}
	if p.Source != nil {
		d.para("  source    ", p.Source.Note, d.theme.warn)
	}
	d.para("  settings  ", settings(p), plain)
	d.para("  cluster   ", fmt.Sprintf("%s, Kubernetes %s", p.Cluster.UID, p.Cluster.ServerVersion), d.theme.dim)
	d.para("  digest    ", p.Digest, d.theme.dim)
}

func settings(p *plan.Plan) string {
	s := p.Settings
	var parts []string
	add := func(name string, value any) { parts = append(parts, fmt.Sprintf("%s %v", name, value)) }
	if p.Pool != nil {
		add("max-unavailable", s.MaxUnavailable)
		if s.FirstBatch > 0 {
			add("first batch", s.FirstBatch)
		}
		if len(s.Batches) > 0 {
			add("batches by hand", len(s.Batches))
		}
		add("drain", s.Drain)
		add("drain-timeout", s.DrainTimeout.Duration)
		if s.DeleteEmptyDir {
			parts = append(parts, "emptyDir data is DELETED")
		}
		if s.EvictUnmanaged {
			parts = append(parts, "pods without a controller are EVICTED")
		}
		if p.Operation == plan.Migrate {
			add("soak", s.Soak.Duration)
			add("kubelet-grace", s.KubeletGrace.Duration)
		}
		add("helper-image", orDash(s.HelperImage))
	} else if s.PluginRollout != "" {
		add("plugin-rollout", s.PluginRollout)
	}
	add("tool-namespace", p.Namespace)
	return strings.Join(parts, ", ")
}

func objects(list []plan.Object) string {
	if len(list) == 0 {
		return "none found"
	}
	var out []string
	for _, o := range list {
		out = append(out, object(o))
	}
	return strings.Join(out, ", ")
}

func object(o plan.Object) string {
	name := strings.ToLower(o.Kind) + "/"
	if o.Namespace != "" {
		name += o.Namespace + "/"
	}
	return name + o.Name
}

func (d *page) restarts(list []plan.Restart) {
	if len(list) == 0 {
		return
	}
	d.heading(fmt.Sprintf("Pods restarted or removed (%d)", len(list)))
	t := table{header: []string{"NODE", "POD", "WHY"}, indent: "  ", width: Width}
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
		d.para(fmt.Sprintf("  %-3d ", i+1), strings.Join(b.Nodes, ", "), lipgloss.NewStyle())
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
	t := table{header: []string{"NODE", "POD", "WHY"}, indent: "  ", width: Width}
	for _, e := range list[:min(len(list), mostPods)] {
		why := e.Why
		if e.Owner.Kind == "" {
			why += "; has no controller"
		} else {
			why += "; of " + strings.ToLower(e.Owner.Kind) + "/" + e.Owner.Name
		}
		for _, b := range e.Budgets {
			why += "; budget " + b
		}
		t.add(Clean(e.Node), Clean(e.Pod), Clean(why))
	}
	d.table(t)
	d.more(len(list) - mostPods)
}
