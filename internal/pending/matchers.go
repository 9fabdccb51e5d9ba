package pending

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

// exam is one diagnosis while it is made.
type exam struct {
	*stock
	o       Options
	pod     *cluster.Pod
	events  []cluster.PodEvent
	verdict verdict

	asked []wish
}

// matcher recognises one cause; nil if it is not that.
type matcher func(*exam) *Diagnosis

// matchers are all causes, the most specific first: what a component says in words of
// its own, then what the state of the cluster makes of words that fit several causes.
func matchers() []matcher {
	return []matcher{
		// What is bound, or has ended.
		cannotEnd, ending,
		refusedByOldKubelet, refused,
		kubeletRemembers, driverGone, prepareFails, notInjected,
		ranWithout, runs, failsOtherwise,
		// What is not bound.
		gated,
		tooMany, claimAndName, quota, claimRefused, classFails,
		claimMissing, silent, noClass, mappingLost,
		nodesClosed, classSelectsNothing, noSlices, slicesIncomplete,
		pluginFull, tainted, nodesTooSmall, taken,
		notDevices, otherScheduler, young,
	}
}

// says finds the first text of the pod's own and of its events that has all the words,
// and who says it.
func (e *exam) says(words ...string) (text, by string) {
	has := func(s string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(s, w) })
	}
	if e.verdict.text != "" && has(e.verdict.text) {
		return e.verdict.text, e.verdict.evidence()
	}
	if has(e.pod.WaitingMessage) {
		return e.pod.WaitingMessage, fmt.Sprintf("container waiting, %s: %s", e.pod.Waiting, e.pod.WaitingMessage)
	}
	if has(e.pod.Message) {
		return e.pod.Message, fmt.Sprintf("status %s: %s", e.pod.Reason, e.pod.Message)
	}
	for _, ev := range e.events {
		// Of the scheduler's words only the last count: each attempt says something new.
		if ev.Reason != failedScheduling && has(ev.Message) {
			return ev.Message, eventText(ev)
		}
	}
	return "", ""
}

func eventText(ev cluster.PodEvent) string {
	return fmt.Sprintf("event %s by %s: %s", ev.Reason, ev.Source, ev.Message)
}

// event is the newest event with a reason; nil if there is none.
func (e *exam) event(reason string) *cluster.PodEvent {
	for i := range e.events {
		if e.events[i].Reason == reason {
			return &e.events[i]
		}
	}
	return nil
}

func (e *exam) bound() bool { return e.pod.Node != "" }

// waits says that a scheduler has to find a node for the pod.
func (e *exam) waits() bool { return e.pod.Node == "" && !e.pod.Finished() && !e.pod.Terminating }

// isYoung says that the pod was made so lately that nobody need ask.
func (e *exam) isYoung() bool {
	age := e.o.Now.Sub(e.pod.Created)
	return age >= 0 && age < patience
}

// unknown gives a person all that was said.
func (e *exam) unknown() Diagnosis {
	out := Diagnosis{Cause: Unknown, Why: "nothing that is known explains it"}
	out.Evidence = append(out.Evidence, fmt.Sprintf("phase %s", orNone(string(e.pod.Phase))))
	if e.verdict.text != "" {
		out.Evidence = append(out.Evidence, e.verdict.evidence())
	}
	if e.pod.Waiting != "" {
		out.Evidence = append(out.Evidence, strings.TrimSuffix(fmt.Sprintf("container waiting, %s: %s", e.pod.Waiting, e.pod.WaitingMessage), ": "))
	}
	if e.pod.Reason != "" {
		out.Evidence = append(out.Evidence, fmt.Sprintf("status %s: %s", e.pod.Reason, e.pod.Message))
	}
	out.Evidence = append(out.Evidence, e.free()...)
	const most = 5
	for i, ev := range e.events {
		if i == most {
			break
		}
		if ev.Message != e.verdict.text {
			out.Evidence = append(out.Evidence, eventText(ev))
		}
	}
	out.Remedy = fmt.Sprintf("`kubectl describe pod -n %s %s`, and the log of who spoke last", e.pod.Namespace, e.pod.Name)
	if e.waits() && e.verdict.cannotAllocate() {
		out.Remedy = "see whether a rule takes devices out of use: `kubectl get devicetaintrules`; then the scheduler's log"
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// few names up to five things and counts the rest.
func few(names []string) string {
	return words.Few(5, names)
}

// untilTold bounds a list of evidence, so that a thousand nodes are five lines.
func untilTold(lines []string) []string {
	const most = 5
	if len(lines) > most {
		return append(slices.Clone(lines[:most]), fmt.Sprintf("and %d more like these", len(lines)-most))
	}
	return lines
}

// nodes writes names as kubectl takes them.
func nodes(names []string) string {
	if len(names) == 1 {
		return "node/" + names[0]
	}
	return "nodes " + few(names)
}

// poolOf is a node's pool, as a person types it; POOL if it is in none.
func (st *stock) poolOf(node string) string {
	n := st.node[node]
	if n == nil {
		return "POOL"
	}
	if mark, err := cluster.ParseNodeState(n); err == nil && mark != nil {
		return mark.Pool
	}
	if pools := cluster.Pools([]corev1.Node{*n}); len(pools) > 0 {
		return pools[0].Name
	}
	return "POOL"
}
