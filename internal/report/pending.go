package report

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/pending"
	"github.com/dramigrate/dramigrate/internal/words"
)

// Diagnosis writes why a pod waits: the cause, what shows it, and what to do.
func Diagnosis(sheet Sheet, g *pending.Diagnosis) error {
	d := newPage(sheet)
	title := "pod/" + g.Pod
	if g.Node != "" {
		title += " on node/" + g.Node
	}
	d.para("", title, d.theme.title)
	d.para(causeStyle(g.Cause, d.theme).Render(fmt.Sprintf("  %s ", causeWord(g.Cause, g.Certain))), g.Why, lipgloss.NewStyle())
	if len(g.Evidence) > 0 {
		d.heading("Seen")
		for _, line := range g.Evidence {
			d.para("  - ", line, lipgloss.NewStyle())
		}
	}
	if g.Remedy != "" {
		d.heading("What to do")
		d.para("  ", g.Remedy, lipgloss.NewStyle())
	}
	if len(g.Unseen) > 0 {
		d.line("")
		d.unread(g.Unseen)
	}
	return d.err
}

// waiting writes one line for each owner whose pods wait, and what to do about it.
func (d *page) waiting(w *pending.Waiters) {
	if w == nil {
		return
	}
	total := w.MorePods
	for _, o := range w.Owners {
		total += o.Pods
	}
	d.heading(fmt.Sprintf("Pods that wait or fail (%d)", total))
	for _, o := range w.Owners {
		d.para(causeStyle(o.Cause, d.theme).Render(fmt.Sprintf("  %s ", causeWord(o.Cause, o.Certain))), waiterText(o), lipgloss.NewStyle())
		if o.Remedy != "" {
			d.para("    -> ", o.Remedy, d.theme.dim)
		}
	}
	if w.More > 0 {
		d.line("  " + moreWaiters(w))
	}
	if len(w.Owners) > 0 {
		d.para("  ", "`dramigrate check pod/NAMESPACE/NAME` looks at one pod with its events", d.theme.dim)
	}
}

func moreWaiters(w *pending.Waiters) string {
	return fmt.Sprintf("and %s with %s that were not looked at", words.Plural(w.More, "more owner", "more owners"), words.Count(w.MorePods, "pod"))
}

// waiterText is an owner with the cause in a sentence.
func waiterText(w pending.Waiter) string {
	text := w.Owner
	if !strings.HasPrefix(w.Owner, "pod/") {
		text += " (" + words.Count(w.Pods, "pod") + ")"
	}
	return text + ": " + w.Why
}

// causeWord marks a cause that is only likely.
func causeWord(c pending.Cause, certain bool) string {
	switch {
	case c == pending.None:
		return "ok"
	case certain || c == pending.Unknown:
		return strings.ToUpper(string(c))
	default:
		return strings.ToUpper(string(c)) + " (likely)"
	}
}

func causeStyle(c pending.Cause, t theme) lipgloss.Style {
	switch c {
	case pending.None:
		return t.good
	case pending.Unknown, pending.NotDevices, pending.Gated, pending.Queued, pending.OtherScheduler:
		return t.warn
	default:
		return t.bad
	}
}
