package pending

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// failedScheduling is the reason of the scheduler's events; their text is that of the
// pod's condition.
const failedScheduling = "FailedScheduling"

// What the scheduler says of a node whose devices do not serve a pod
// (pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go and
// noderesources/fit.go, v1.37.2).
const (
	cannotAllocate = "cannot allocate all claims"
	insufficient   = "Insufficient "
)

// verdict is what a scheduler said last.
type verdict struct {
	// reason is "Unschedulable", a verdict on nodes, or "SchedulerError", by which a whole
	// attempt ended.
	reason, text string
	// refusals are what it says of nodes.
	refusals []refusal
}

type refusal struct {
	nodes int
	text  string
}

var available = regexp.MustCompile(`^0/[0-9]+ nodes are available: `)

// verdictOf reads the condition PodScheduled, or if there is no text in it the newest
// event.
func verdictOf(p *cluster.Pod, events []cluster.PodEvent) verdict {
	var v verdict
	if p.Scheduled != nil {
		v.reason, v.text = p.Scheduled.Reason, p.Scheduled.Message
	}
	if p.Node != "" {
		return verdict{}
	}
	if v.text == "" {
		for _, ev := range events {
			if ev.Reason == failedScheduling {
				v.text = ev.Message
				break
			}
		}
		if v.text != "" && v.reason == "" && available.MatchString(v.text) {
			v.reason = corev1.PodReasonUnschedulable
		}
	}
	m := available.FindString(v.text)
	if m == "" {
		return v
	}
	v.refusals = refusals(v.text[len(m):])
	return v
}

// refusals splits "1 Insufficient cpu, 8 node(s) had untolerated taint(s). preemption: …".
// A reason may have a comma of its own; the next begins with a number.
func refusals(text string) []refusal {
	if end := strings.Index(text, ". "); end >= 0 {
		text = text[:end]
	}
	text = strings.TrimSuffix(text, ".")
	var out []refusal
	for part := range strings.SplitSeq(text, ", ") {
		number, rest, ok := strings.Cut(part, " ")
		n, err := strconv.Atoi(number)
		switch {
		case ok && err == nil:
			out = append(out, refusal{n, rest})
		case len(out) > 0:
			out[len(out)-1].text += ", " + part
		}
	}
	return out
}

// of is of how many nodes it says a text.
func (v verdict) of(text string) int {
	n := 0
	for _, r := range v.refusals {
		if strings.Contains(r.text, text) {
			n += r.nodes
		}
	}
	return n
}

func (v verdict) cannotAllocate() bool { return v.of(cannotAllocate) > 0 }

// insufficient is of how many nodes it says that they have too little of a resource.
func (v verdict) insufficient(resource string) int {
	n := 0
	for _, r := range v.refusals {
		if r.text == insufficient+resource {
			n += r.nodes
		}
	}
	return n
}

// evidence is the verdict as a person finds it in the pod.
func (v verdict) evidence() string {
	return fmt.Sprintf("scheduler, %s: %s", orNone(v.reason), v.text)
}
