package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// row is one thing that was measured, for each mover.
type row struct {
	what  string
	cells []string
}

// table prints rows as Markdown.
func table(w io.Writer, title string, movers []string, rows []row) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
	p("\n%s\n\n| | %s |\n|---%s|\n", title, strings.Join(movers, " | "), strings.Repeat("|---", len(movers)))
	for _, r := range rows {
		p("| %s | %s |\n", r.what, strings.Join(r.cells, " | "))
	}
}

// rowsOf are a phase's figures, one column for each mover.
func rowsOf(all []figures) []row {
	var rows []row
	add := func(what string, value func(figures) string) {
		r := row{what: what}
		for _, f := range all {
			r.cells = append(r.cells, value(f))
		}
		rows = append(rows, r)
	}
	add("ended with", func(f figures) string { return ending(f.failure) })
	add("took", func(f figures) string { return seconds(f.took) })
	add("requests that change something", func(f figures) string { return fmt.Sprint(f.mutations) })
	add("plugin pods replaced in the other pool", func(f figures) string { return names(f.restartedElsewhere) })
	add("plugin pods replaced in the pool, on nodes open to pods", func(f figures) string { return names(f.restartedOpen) })
	for i, n := range all[0].nodes {
		at := func(value func(nodeFigures) time.Duration) func(figures) string {
			return func(f figures) string { return seconds(value(f.nodes[i])) }
		}
		add(n.node+": open to pods with no GPU on offer", at(func(n nodeFigures) time.Duration { return n.noGPUs }))
		add(n.node+": open, API server counts GPUs that the kubelet has not", at(func(n nodeFigures) time.Duration { return n.stale }))
		add(n.node+": same GPUs by plugin and driver", at(func(n nodeFigures) time.Duration { return n.both }))
		add(n.node+": the same while open to pods", at(func(n nodeFigures) time.Duration { return n.bothOpen }))
	}
	add("fewest available pods of the workload", func(f figures) string { return fmt.Sprintf("%d of %d", f.leastAvailable, f.workload.replicas) })
	add("fewer than its budget asks for", func(f figures) string { return seconds(f.belowBudget) })
	add("short jobs submitted", func(f figures) string { return fmt.Sprint(f.jobs.submitted) })
	add("ran by plugin, by claim", func(f figures) string { return fmt.Sprintf("%d, %d", f.jobs.byPlugin, f.jobs.byClaim) })
	add("jobs lost", func(f figures) string { return counts(f.jobs.failed) })
	add("jobs that did not run", func(f figures) string { return counts(f.jobs.waiting) })
	add("GPUs given to two containers", func(f figures) string { return names(f.twice) })
	return rows
}

func graceRows(all []graceFigures) []row {
	rows := []row{{what: "new pods that ran"}, {what: "why the others did not"}, {what: "ran after a kubelet restart"},
		{what: "ran after a PodResources List call"}, {what: "the move before ended with"}}
	for _, f := range all {
		rows[4].cells = append(rows[4].cells, ending(f.failure))
		rows[0].cells = append(rows[0].cells, fmt.Sprintf("%d of %d", f.ready, latePods))
		rows[1].cells = append(rows[1].cells, counts(f.reasons))
		restart, list := "-", "-"
		if f.ready < latePods {
			restart = fmt.Sprintf("%d of %d", f.afterRestart, latePods)
			list = fmt.Sprintf("%d of %d, after %s", f.afterList, latePods, seconds(f.cured))
		}
		rows[2].cells = append(rows[2].cells, restart)
		rows[3].cells = append(rows[3].cells, list)
	}
	return rows
}

func driverFirstRows(f driverFirstFigures) []row {
	rows := []row{
		{"pods Terminating at its end", []string{fmt.Sprint(f.terminating)}},
		{"the longest of them for", []string{seconds(f.longest)}},
	}
	if f.terminating > 0 {
		rows = append(rows, row{"left after the driver was brought back", []string{fmt.Sprintf("%d, after %s", f.left, seconds(f.freed))}})
	}
	return append(rows, rowsOf([]figures{f.figures})...)
}

func ending(failure error) string {
	if failure == nil {
		return "success"
	}
	return failure.Error()
}

func seconds(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func names(list []string) string {
	if len(list) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", len(list), strings.Join(list, "; "))
}

func counts(of map[string]int) string {
	if len(of) == 0 {
		return "0"
	}
	total := 0
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		total += of[key]
		parts = append(parts, fmt.Sprintf("%d × %s", of[key], key))
	}
	return fmt.Sprintf("%d: %s", total, strings.Join(parts, "; "))
}
