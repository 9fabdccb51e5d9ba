package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dramigrate/dramigrate/test/cluster/e2e"
)

// lap is a part of the demo and how long it took.
type lap struct {
	what string
	took time.Duration
}

func (d *demo) say(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demo) heading(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.say("\n%s\n%s", text, strings.Repeat("=", len(text)))
}

// took notes what has lasted since begin.
func (d *demo) took(what string, begin time.Time) {
	d.laps = append(d.laps, lap{what, time.Since(begin)})
}

// table prints rows in columns.
func table(w io.Writer, rows ...[]string) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		_, _ = fmt.Fprintln(columns, "  "+strings.Join(r, "\t"))
	}
	_ = columns.Flush()
}

// showWorkload lists the workload's pods, what serves each, and the GPU that each sees.
func (d *demo) showWorkload(ctx context.Context) ([]e2e.Served, error) {
	if why := d.bench.WorkloadReady(ctx, workload, replicas); why != "" {
		return nil, fmt.Errorf("%s", why)
	}
	pods, err := d.bench.Workload(ctx, namespace, workload)
	if err != nil {
		return nil, err
	}
	rows := [][]string{{"POD", "NODE", "SERVED BY", "GPU THAT ITS CONTAINER SEES"}}
	for _, p := range pods {
		by := "device plugin"
		if p.Claim != "" {
			by = "DRA, claim " + p.Claim
		}
		rows = append(rows, []string{p.Pod, p.Node, by, strings.Join(p.Sees, ", ")})
	}
	d.say("")
	table(d.out, rows...)
	return pods, nil
}

func (d *demo) summary() {
	d.heading("Summary")
	var rows [][]string
	for _, l := range d.laps {
		rows = append(rows, []string{l.what, fmt.Sprintf("%5.1f s", l.took.Seconds())})
	}
	table(d.out, append(rows, []string{"all", fmt.Sprintf("%5.1f s", time.Since(d.began).Seconds())})...)
	d.say("")
	for _, c := range d.checked {
		d.say("  ok  %s", c)
	}
}
