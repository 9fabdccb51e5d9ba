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
}

// Probe asks the kubelet of a node, by a pod there, what it advertises and who holds
// what. The call of PodResources List that this includes clears the kubelet's memory
// of pods that are gone (see nodeprobe).
//
// A report of which a part is unknown comes with an *Error of the kind Incomplete;
// with any other kind but Leftover there is no report.
func (r *Runner) Probe(ctx context.Context, node string, o ProbeOptions) (*nodeprobe.NodeReport, error) {
	j := &job{purpose: ForProbe, node: node, pod: r.probePod(node, o.Wait), wait: o.Wait}
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
		if len(found.Unknown) > 0 {
			return j.failed(Incomplete, "the node could not see everything: "+unknowns(found.Unknown), nil)
		}
		return nil
	})
	return report, err
}

// reported says whether a probe that ended so has written its report.
func reported(exit int32) bool {
	return exit == nodeprobe.ExitOK || exit == nodeprobe.ExitDouble || exit == nodeprobe.ExitUnknown
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
