package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/status"
)

// History writes runs, the newest first. wide adds the whole of what is cut short
// otherwise: who, the digest, how long it took and by which version.
func History(sheet Sheet, h *status.RunHistory, wide bool) error {
	d := newPage(sheet)
	if len(h.Runs) == 0 {
		d.line("No run is recorded.")
		d.unread(h.Unknown)
		return d.err
	}
	t := table{header: []string{"STARTED", "POOL", "RUN", "OPERATION", "OUTCOME", "WHO", "PLAN", "MESSAGE"}}
	if wide {
		t.header = []string{"STARTED", "POOL", "RUN", "OPERATION", "OUTCOME", "TOOK", "VERSION", "EPOCH", "WHO", "PLAN", "MESSAGE"}
	}
	for _, r := range h.Runs {
		pool := "(shared)"
		if r.Pool != "" {
			pool = Clean(r.Pool)
		}
		row := []string{r.Started.UTC().Format(time.RFC3339), pool, Clean(r.ID), Clean(operationText(r.RunRecord)), Clean(r.State())}
		if wide {
			row = append(row, took(r), orDash(Clean(r.ToolVersion)), fmt.Sprint(r.Epoch), orDash(Clean(r.Who)), orDash(Clean(r.PlanDigest)))
		} else {
			row = append(row, orDash(Clean(person(r.Who))), orDash(Clean(shortDigest(r.PlanDigest))))
		}
		t.add(append(row, Clean(r.Message))...)
	}
	d.listing(t, wide)
	d.unread(h.Unknown)
	return d.err
}

// RunNames writes the runs' IDs, one a line.
func RunNames(w io.Writer, h *status.RunHistory) error {
	for _, r := range h.Runs {
		if _, err := fmt.Fprintln(w, "run/"+Clean(r.ID)); err != nil {
			return err
		}
	}
	return nil
}

// operationText is what a run did, and with which other pool.
func operationText(r cluster.RunRecord) string {
	switch {
	case r.Into == "":
		return r.Operation
	case r.Operation == string(plan.Rollback):
		return r.Operation + " from " + r.Into
	default:
		return r.Operation + " into " + r.Into
	}
}

func took(r status.Run) string {
	if r.Ended == nil {
		return "-"
	}
	return short(r.Ended.Sub(r.Started.Time))
}

// person is the holder without what tells two of his processes apart.
func person(who string) string {
	name, _, _ := strings.Cut(who, "/")
	return name
}

// shortDigest is enough of a digest to find the plan by.
func shortDigest(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(len(digest), 12)]
}
