package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/internal/words"
)

// PoolProbe writes a row for each node, then what is not clean with its reasons, then
// the verdict. wide adds every device.
func PoolProbe(sheet Sheet, r *poolprobe.Result, wide bool) error {
	d := newPage(sheet)
	if len(r.Nodes) == 0 {
		d.line("No node of the pool has devices.")
	} else {
		d.probeTable(r, wide)
	}
	for i := range r.Nodes {
		d.probedNode(&r.Nodes[i], wide)
	}
	d.unread(r.Unknown)
	d.line("")
	d.line("Verdict: " + verdictStyle(r.Verdict, d.theme).Render(verdictWord(r.Verdict)))
	return d.err
}

func (d *page) probeTable(r *poolprobe.Result, wide bool) {
	t := table{header: []string{"NODE", "GPUS", "PLUGIN", "DRA", "BOTH", "HOLDERS", "VERDICT"}}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		gpus := "?"
		if n.GPUs != nil {
			gpus = strconv.Itoa(*n.GPUs)
		}
		row := []string{Clean(n.Name), gpus, "?", "?", "?", "?", verdictCell(n)}
		if n.Report != nil {
			row = []string{Clean(n.Name), gpus, strconv.Itoa(n.Plugin), strconv.Itoa(n.DRA), strconv.Itoa(n.Both), holderCounts(n.Holders), verdictCell(n)}
		}
		t.add(row...)
	}
	d.listing(t, wide)
}

func verdictCell(n *poolprobe.Node) string {
	text := verdictWord(n.Verdict)
	if n.Source == poolprobe.FromAPI {
		text += " (from the API alone)"
	}
	return text
}

// verdictWord is loud where it is not good, so that it is seen without colours.
func verdictWord(v nodeprobe.Verdict) string {
	if v == nodeprobe.Clean {
		return string(v)
	}
	return strings.ToUpper(string(v))
}

func verdictStyle(v nodeprobe.Verdict, t theme) lipgloss.Style {
	switch v {
	case nodeprobe.Clean:
		return t.good
	case nodeprobe.Undecided:
		return t.warn
	default:
		return t.bad
	}
}

// holderCounts counts the holders by what gave them their devices.
func holderCounts(list []poolprobe.Holder) string {
	var parts []string
	for _, by := range []nodeprobe.By{nodeprobe.ByPlugin, nodeprobe.ByDRA, nodeprobe.ByBoth, nodeprobe.ByProcess, nodeprobe.ByUnknown} {
		n := 0
		for _, h := range list {
			if h.By == by {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, by))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// probedNode tells of a node what the row has no room for.
func (d *page) probedNode(n *poolprobe.Node, wide bool) {
	if n.Verdict == nodeprobe.Clean && n.Error == "" && !wide {
		return
	}
	d.heading("node/" + Clean(n.Name))
	for _, why := range n.Reasons {
		d.para(verdictStyle(n.Verdict, d.theme).Render(fmt.Sprintf("  %-7s ", reasonWord(n.Verdict))), why, lipgloss.NewStyle())
	}
	if n.Error != "" {
		d.para(d.theme.warn.Render("  ERROR   "), n.Error, lipgloss.NewStyle())
	}
	if n.Report == nil {
		return
	}
	for _, u := range n.Report.Unknown {
		if text := u.Part + ": " + u.Reason; !slices.Contains(n.Reasons, text) {
			d.para(d.theme.dim.Render("  unknown "), text, d.theme.dim)
		}
	}
	if !wide || len(n.Report.Devices) == 0 {
		return
	}
	if len(n.Report.Leftovers) > 0 {
		d.para("  ", words.Plural(len(n.Report.Leftovers), "record of a pod that is gone is", "records of pods that are gone are")+" left on its disk; they hold nothing.", d.theme.dim)
	}
	t := table{header: []string{"DEVICE", "TYPE", "ADVERTISED BY", "HELD BY", "VERDICT", "HOLDERS"}, indent: "  "}
	for i := range n.Report.Devices {
		dev := &n.Report.Devices[i]
		t.add(Clean(deviceName(dev)), orDash(Clean(dev.Type)), string(dev.AdvertisedBy), string(dev.HeldBy), verdictWord(dev.Verdict), Clean(deviceHolders(dev)))
	}
	d.listing(t, wide)
}

func reasonWord(v nodeprobe.Verdict) string {
	if poolprobe.IsDouble(v) {
		return "DOUBLE"
	}
	return "UNKNOWN"
}

func deviceHolders(d *nodeprobe.DeviceState) string {
	var out []string
	for _, h := range d.Holds {
		out = append(out, poolprobe.HolderName(h)+" ("+string(h.By)+")")
	}
	return strings.Join(out, ", ")
}
