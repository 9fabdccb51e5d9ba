package helperpod

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
)

// ProbeOptions are the choices of one probe.
type ProbeOptions struct {
	Wait
	Reach
	// Beside is a probe that belongs to no run and holds no lock.
	Beside bool
}

// Probe asks a node, by a pod there, what its kubelet advertises and who holds what,
// and what else Reach looks at. The call of PodResources List that this includes clears
// the kubelet's memory of pods that are gone (see nodeprobe).
//
// A report without one of the kubelet's own answers comes with an *Error of the kind
// Incomplete; what else is unknown stands in the report alone. With any other kind but
// Leftover there is no report.
func (r *Runner) Probe(ctx context.Context, node string, o ProbeOptions) (*nodeprobe.NodeReport, error) {
	purpose := ForProbe
	if o.Beside {
		purpose = ForReport
	}
	j := &job{purpose: purpose, node: node, pod: r.probePod(purpose, node, o.Reach, o.Wait), wait: o.Wait}
	j.until = j.ended
	var report *nodeprobe.NodeReport
	err := r.run(ctx, j, func(_ context.Context, v view, log string) error {
		end := terminated(v.pod)
		found, err := parseReport(log, node)
		if err != nil || !reported(end.ExitCode) {
			e := j.failed(NoAnswer, "no report of the node: "+ending(v.pod), err)
			e.Log = tail(log)
			return e
		}
		report = found
		if missing := unanswered(found); len(missing) > 0 {
			return j.failed(Incomplete, "the node could not see everything: "+unknowns(missing), nil)
		}
		return nil
	})
	return report, err
}

// reported says whether a probe that ended so has written its report.
func reported(exit int32) bool {
	return exit == nodeprobe.ExitOK || exit == nodeprobe.ExitDouble || exit == nodeprobe.ExitUnknown
}

// unanswered are the kubelet's own answers that the report lacks.
func unanswered(r *nodeprobe.NodeReport) []nodeprobe.Unknown {
	var out []nodeprobe.Unknown
	for _, u := range r.Unknown {
		if u.Part == nodeprobe.PartAdvertised || u.Part == nodeprobe.PartHolders {
			out = append(out, u)
		}
	}
	return out
}

// parseReport finds the report in a log, where it is one line among those of the
// error stream.
func parseReport(log, node string) (*nodeprobe.NodeReport, error) {
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var report nodeprobe.NodeReport
		if err := json.Unmarshal([]byte(line), &report); err != nil {
			return nil, fmt.Errorf("the report cannot be read: %w", err)
		}
		if report.APIVersion != nodeprobe.APIVersion || report.Kind != nodeprobe.Kind {
			return nil, fmt.Errorf("the image answers with %s %s, and this program reads %s %s: they are of different versions",
				report.APIVersion, report.Kind, nodeprobe.APIVersion, nodeprobe.Kind)
		}
		if report.Node != node {
			return nil, fmt.Errorf("the report is of node %s", report.Node)
		}
		return &report, nil
	}
	return nil, fmt.Errorf("the log holds none")
}

func unknowns(list []nodeprobe.Unknown) string {
	parts := make([]string, len(list))
	for i, u := range list {
		parts[i] = u.Part + ": " + u.Reason
	}
	return strings.Join(parts, "; ")
}
