package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/status"
	"github.com/dramigrate/dramigrate/internal/words"
)

// Status writes nodes, then what is not as the runs have left it, then pools with their
// locks and runs, then what could not be read. wide adds what an operator looks up
// next: labels, kubelets, UIDs, selectors.
func Status(sheet Sheet, s *status.Status, wide bool) error {
	d := newPage(sheet)
	d.statusNodes(s, wide)
	d.strays(s.Strays)
	d.waiting(s.Waiting)
	d.statusPools(s, wide)
	d.notReady(s.Pools)
	d.findings(s.Findings)
	d.unread(s.Unknown)
	return d.err
}

func (d *page) statusNodes(s *status.Status, wide bool) {
	if len(s.Nodes) == 0 {
		d.line(fmt.Sprintf("No node has devices of %s or %s.", Clean(s.Resource), Clean(s.Driver)))
		return
	}
	t := table{header: []string{"NODE", "POOL", "MECHANISM", "PLUGIN", "DRA", "READY", "OPEN"}}
	if wide {
		t.header = append(t.header, "LABELS", "KUBELET", "UID")
	}
	t.header = append(t.header, "NOTE")
	for _, n := range s.Nodes {
		row := []string{Clean(n.Name), orDash(Clean(n.Pool)), string(n.Mechanism), allocatableCell(n.Allocatable),
			publishedCell(n.Published), yesNo(n.Ready), openCell(n)}
		if wide {
			row = append(row, orDash(Clean(labelsText(n.GateLabels))), orDash(Clean(n.KubeletVersion)), orDash(Clean(string(n.UID))))
		}
		t.add(append(row, Clean(note(n)))...)
	}
	d.listing(t, wide)
}

func (d *page) strays(list []status.Stray) {
	if len(list) == 0 {
		return
	}
	d.heading(fmt.Sprintf("Not as the runs have left it (%d)", len(list)))
	for _, s := range list {
		style := d.theme.warn
		if s.Kind == status.TwoStates || s.Kind == status.GateOpen {
			style = d.theme.bad
		}
		d.para(style.Render(fmt.Sprintf("  %-10s ", strings.ToUpper(string(s.Kind)))), s.Object+": "+s.What, lipgloss.NewStyle())
		if s.Do != "" {
			d.para("             -> ", s.Do, d.theme.dim)
		}
	}
}

func (d *page) statusPools(s *status.Status, wide bool) {
	if len(s.Pools) == 0 {
		return
	}
	d.line("")
	t := table{header: []string{"POOL", "NODES", "PLUGIN", "SWITCHING", "DRA", "ROLLBACK"}}
	bare := slices.ContainsFunc(s.Pools, func(p status.Pool) bool { return p.Nodes > p.WithDevices })
	if bare {
		t.header = slices.Insert(t.header, 5, "NO DEVICE")
	}
	if wide {
		t.header = append(t.header, "SELECTOR")
	}
	t.header = append(t.header, "LOCK", "LAST RUN")
	for _, p := range s.Pools {
		row := []string{Clean(p.Name), strconv.Itoa(p.Nodes), strconv.Itoa(p.Plugin), strconv.Itoa(p.Switching),
			strconv.Itoa(p.DRA), rollbackCell(p.Rollback)}
		if bare {
			row = slices.Insert(row, 5, strconv.Itoa(p.Nodes-p.WithDevices))
		}
		if wide {
			row = append(row, orDash(Clean(p.Selector)))
		}
		t.add(append(row, lockCell(p.Lock), lastRun(p.Runs))...)
	}
	d.listing(t, wide)
	for _, p := range s.Pools {
		if text := movedText(p); text != "" {
			d.para("", "Pool "+p.Name+": "+text, lipgloss.NewStyle())
		}
	}
}

// movedText says which pool the workloads went to or came from; empty if they did not.
func movedText(p status.Pool) string {
	text := ""
	switch {
	case p.Into != "" && p.Retired > 0:
		text = fmt.Sprintf("its workloads went into pool %s; %s of %d closed", p.Into, words.Plural(p.Retired, "node", "nodes"), p.WithDevices)
	case p.Into != "":
		text = "its workloads go into pool " + p.Into
	case p.From != "" && p.Retired > 0:
		text = fmt.Sprintf("the workloads of pool %s came back from it; %s of %d closed", p.From, words.Plural(p.Retired, "node", "nodes"), p.WithDevices)
	case p.From != "":
		text = "it takes the workloads of pool " + p.From
	}
	return text
}

// notReady says why pools could not be put back.
func (d *page) notReady(pools []status.Pool) {
	for _, p := range pools {
		if p.Rollback == nil {
			continue
		}
		for _, why := range p.Rollback.Why {
			d.para(d.theme.warn.Render("ROLLBACK of "+Clean(p.Name)+": "), why, lipgloss.NewStyle())
		}
	}
}

func (d *page) unread(list []cluster.Unknown) {
	for _, u := range list {
		for i, line := range wrap("UNKNOWN: "+Clean(u.Part)+" could not be read: "+Clean(u.Reason), d.sheet.prose()-2) {
			if i > 0 {
				line = "  " + line
			}
			d.line(d.theme.warn.Render(line))
		}
	}
}

// NodeNames writes the nodes' names as kubectl does, one a line.
func NodeNames(w io.Writer, s *status.Status) error {
	for _, n := range s.Nodes {
		if _, err := fmt.Fprintln(w, "node/"+Clean(n.Name)); err != nil {
			return err
		}
	}
	return nil
}

func note(n status.Node) string {
	var parts []string
	if n.Double {
		parts = append(parts, "ADVERTISED TWICE")
	}
	if n.Operation != "" {
		parts = append(parts, fmt.Sprintf("%s at %s, run %s", n.Operation, n.Phase, n.Run))
	}
	switch {
	case n.Retired:
		parts = append(parts, "left by its workloads")
	case n.Role == cluster.RoleNew && n.Operation == "":
		parts = append(parts, "takes workloads of another pool")
	}
	if n.Incomplete != "" {
		parts = append(parts, n.Incomplete)
	}
	if len(n.Drift) > 0 {
		parts = append(parts, "its label has drifted")
	}
	if n.Problem != "" {
		parts = append(parts, n.Problem)
	}
	return strings.Join(parts, "; ")
}

func labelsText(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ",")
}

func openCell(n status.Node) string {
	switch {
	case n.Closed && n.Cordoned:
		return "no"
	case n.Closed:
		return "tainted"
	case n.Cordoned:
		return "cordoned"
	default:
		return "yes"
	}
}

func allocatableCell(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func publishedCell(n *int) string {
	if n == nil {
		return "?"
	}
	return strconv.Itoa(*n)
}

func rollbackCell(r *status.Rollback) string {
	switch {
	case r == nil:
		return "-"
	case r.Result == status.OK:
		return "ready"
	case r.Result == status.Unknown:
		return "UNKNOWN"
	default:
		return "NOT READY"
	}
}

func lockCell(l *status.Lock) string {
	switch {
	case l == nil:
		return "-"
	case l.Unknown:
		return strings.TrimSuffix("UNKNOWN, "+Clean(l.Holder), ", ")
	case l.Expired:
		return "expired, " + Clean(l.Holder)
	default:
		return Clean(l.Holder)
	}
}

func lastRun(runs []cluster.RunRecord) string {
	if len(runs) == 0 {
		return "-"
	}
	r := runs[len(runs)-1]
	if r.Ended == nil {
		return fmt.Sprintf("%s %s since %s", Clean(r.Operation), Clean(r.ID), r.Started.UTC().Format(time.RFC3339))
	}
	text := fmt.Sprintf("%s %s %s %s", Clean(r.Operation), Clean(r.ID), Clean(r.Outcome), r.Ended.UTC().Format(time.RFC3339))
	if r.Message != "" {
		text += ": " + Clean(r.Message)
	}
	return text
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
