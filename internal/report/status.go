package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/status"
)

// Status writes nodes, then pools with their runs, then what could not be read.
func Status(w io.Writer, s *status.Status) error {
	th := newTheme()
	nodes := table{header: []string{"NODE", "POOL", "MECHANISM", "PLUGIN", "DRA", "READY", "OPEN", "NOTE"}, width: Width}
	for _, n := range s.Nodes {
		nodes.add(Clean(n.Name), orDash(Clean(n.Pool)), string(n.Mechanism), allocatableCell(n.Allocatable),
			strconv.Itoa(n.Published), yesNo(n.Ready), openCell(n), Clean(note(n)))
	}
	if len(s.Nodes) == 0 {
		if _, err := fmt.Fprintf(w, "No node has devices of %s or %s.\n", Clean(s.Resource), Clean(s.Driver)); err != nil {
			return err
		}
	} else if err := nodes.print(w, th.title); err != nil {
		return err
	}
	if len(s.Pools) > 0 {
		fmt.Fprintln(w)
		pools := table{header: []string{"POOL", "NODES", "PLUGIN", "SWITCHING", "DRA", "LOCK", "LAST RUN"}, width: Width}
		for _, p := range s.Pools {
			pools.add(Clean(p.Name), strconv.Itoa(p.WithDevices), strconv.Itoa(p.Plugin), strconv.Itoa(p.Switching),
				strconv.Itoa(p.DRA), lockCell(p.Lock), lastRun(p.Runs))
		}
		if err := pools.print(w, th.title); err != nil {
			return err
		}
	}
	return unknowns(w, s.Unknown, th)
}

func unknowns(w io.Writer, list []cluster.Unknown, th theme) error {
	for _, u := range list {
		for i, line := range wrap("UNKNOWN: "+u.Part+" could not be read: "+Clean(u.Reason), Width) {
			if i > 0 {
				line = "  " + line
			}
			if _, err := fmt.Fprintln(w, th.warn.Render(line)); err != nil {
				return err
			}
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
	if n.Incomplete != "" {
		parts = append(parts, n.Incomplete)
	}
	if n.Problem != "" {
		parts = append(parts, n.Problem)
	}
	return strings.Join(parts, "; ")
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

func lockCell(l *status.Lock) string {
	switch {
	case l == nil:
		return "-"
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
