package pending

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// kueueGates are how Kueue holds a pod (kubernetes-sigs/kueue, pkg/controller/jobs/pod
// and pkg/features, gates kueue.x-k8s.io/admission and kueue.x-k8s.io/topology).
const kueueGates = "kueue.x-k8s.io/"

// gated is a pod that no scheduler looks at yet.
func gated(e *exam) *Diagnosis {
	if !e.waits() || len(e.pod.SchedulingGates) == 0 {
		return nil
	}
	out := &Diagnosis{Cause: Gated, Certain: true,
		Why:      "it is held back by " + few(e.pod.SchedulingGates) + ": no scheduler looks at it",
		Evidence: []string{"spec.schedulingGates: " + few(e.pod.SchedulingGates)},
		Remedy:   "ask whoever set the gate: it is not a matter of devices"}
	for _, g := range e.pod.SchedulingGates {
		if strings.HasPrefix(g, kueueGates) {
			out.Cause = Queued
			out.Why = "Kueue has not admitted it"
			if e.pod.Queue != "" {
				out.Evidence = append(out.Evidence, "queue "+e.pod.Queue)
			}
			out.Remedy = fmt.Sprintf("see why: `kubectl get workloads -n %s`", e.pod.Namespace)
		}
	}
	return out
}

// silent is a pod of which no scheduler has said anything.
func silent(e *exam) *Diagnosis {
	if !e.waits() || e.verdict.text != "" || e.isYoung() {
		return nil
	}
	name := cmp.Or(e.pod.SchedulerName, corev1.DefaultSchedulerName)
	return &Diagnosis{Cause: Unscheduled,
		Why:      "no scheduler has said anything about it: it is for " + name,
		Evidence: []string{"spec.schedulerName: " + name, "made " + e.pod.Created.UTC().Format("2006-01-02T15:04:05Z07:00")},
		Remedy:   "see whether " + name + " runs, and its log"}
}

// otherScheduler is a pod of which another scheduler speaks in words that say nothing
// here.
func otherScheduler(e *exam) *Diagnosis {
	if !e.waits() || e.verdict.text == "" || e.pod.SchedulerName == "" || e.pod.SchedulerName == corev1.DefaultSchedulerName {
		return nil
	}
	return &Diagnosis{Cause: OtherScheduler, Certain: true,
		Why:      fmt.Sprintf("scheduler %s does not bind it", e.pod.SchedulerName),
		Evidence: []string{e.verdict.evidence()},
		Remedy:   "see the log and the queues of " + e.pod.SchedulerName}
}

// young is a pod that has only just been made.
func young(e *exam) *Diagnosis {
	if !e.isYoung() || e.pod.Finished() || e.verdict.text != "" || e.pod.Waiting != "" && !starting(e.pod.Waiting) {
		return nil
	}
	return &Diagnosis{Cause: None, Why: "it was made less than 30 seconds ago, and nothing is said about it", Certain: true}
}

var exceedsLimit = regexp.MustCompile(`exceeds the claim limit of ([0-9]+)`)

// tooMany is an error of the scheduler and keeps the pod from nodes of the plugin too.
func tooMany(e *exam) *Diagnosis {
	text, by := e.says("exceeds the claim limit of ")
	m := exceedsLimit.FindStringSubmatch(text)
	if !e.waits() || m == nil {
		return nil
	}
	why := fmt.Sprintf("it asks for more than %s devices, the most that one claim can hold", m[1])
	remedy := "ask for fewer devices in one pod"
	for _, w := range e.wishes() {
		if w.resource != "" && w.class != nil && w.need > 32 {
			why = fmt.Sprintf("it asks for %d %s, and one claim holds %s devices at most", w.need, w.resource, m[1])
			remedy = "ask for fewer in one pod, or pin it by nodeSelector to nodes that still have the plugin"
		}
	}
	return &Diagnosis{Cause: TooMany, Why: why, Evidence: []string{by}, Remedy: remedy, Certain: true}
}

// claimAndName is the scheduler's fault with a pod that has a claim and a mapped name,
// on a node of the plugin.
func claimAndName(e *exam) *Diagnosis {
	_, by := e.says("nil or empty request mappings")
	if !e.waits() || by == "" {
		return nil
	}
	var names []string
	for _, w := range e.wishes() {
		if w.resource != "" {
			names = append(names, w.resource)
		}
	}
	out := &Diagnosis{Cause: ClaimAndName, Certain: true,
		Why: fmt.Sprintf("it has a ResourceClaim and asks for %s as well: while a DeviceClass carries that name, the scheduler cannot bind such a pod to a node of the plugin",
			few(names)),
		Evidence: []string{by, "spec.resourceClaims: " + few(e.pod.Claims)},
		Remedy:   "let it get all of its devices from claims, or let it go only to nodes that are on DRA; `dramigrate explain DRM006` says more"}
	for _, w := range e.wishes() {
		if w.resource != "" && w.class != nil {
			out.Evidence = append(out.Evidence, fmt.Sprintf("deviceclass/%s carries %s", w.className, w.resource))
		}
	}
	return out
}

var exceededQuota = regexp.MustCompile(`exceeded quota: ([^,]+), requested: (.+), used: (.+), limited: (.+)`)

// quota is a claim, made by the scheduler or of a template, that a quota refuses.
func quota(e *exam) *Diagnosis {
	text, by := e.says("resourceclaims.resource.k8s.io", "exceeded quota: ")
	m := exceededQuota.FindStringSubmatch(text)
	if !e.waits() || m == nil || text != e.verdict.text && !slices.Contains(e.pod.Claims, "") {
		return nil // an event may be about a claim that has been made since
	}
	return &Diagnosis{Cause: Quota, Certain: true,
		Why: fmt.Sprintf("resourcequota/%s/%s refuses the claim that is made for it: requested %s, used %s, limited %s",
			e.pod.Namespace, m[1], m[2], m[3], m[4]),
		Evidence: []string{by},
		Remedy: fmt.Sprintf("raise the limit: `kubectl edit resourcequota -n %s %s`; pods that DRA serves count there by their claims",
			e.pod.Namespace, m[1])}
}

// claimRefused is a generated claim that something else refuses, such as a webhook.
func claimRefused(e *exam) *Diagnosis {
	text, by := e.says("create claim for extended resources")
	if !e.waits() || text == "" {
		return nil
	}
	return &Diagnosis{Cause: ClaimRefused, Certain: true,
		Why:      "the scheduler may not make the claim for it",
		Evidence: []string{by},
		Remedy:   "have whoever refuses it take claims that system:kube-scheduler makes: `kubectl get validatingadmissionpolicies,validatingwebhookconfigurations,mutatingwebhookconfigurations`"}
}

// classFails is an expression that reads what a device does not have. It ends the whole
// attempt, for all nodes.
func classFails(e *exam) *Diagnosis {
	if !e.waits() {
		return nil
	}
	_, by := e.says("CEL runtime error")
	if by == "" {
		if _, by = e.says("CEL", "compile"); by == "" {
			return nil
		}
	}
	out := &Diagnosis{Cause: ClassFails, Certain: true, Evidence: []string{by},
		Why:    "a selector fails on a published device, and with it the whole attempt, for all nodes",
		Remedy: "guard the attribute in the class's expression by has() or orValue()"}
	for _, w := range e.wishes() {
		if w.class == nil {
			continue
		}
		if sup := e.supply(w); sup.failure != "" {
			out.Why = fmt.Sprintf("%s fails on a published device, and with it the whole attempt, for all nodes", w.selectedBy())
			out.Evidence = append(out.Evidence, sup.failure)
			out.Remedy = fmt.Sprintf("guard the attribute in its expression by has() or orValue(): `kubectl edit deviceclass %s`", w.className)
		}
	}
	return out
}

// claimMissing is a claim of the pod's own that does not exist.
func claimMissing(e *exam) *Diagnosis {
	if !e.waits() {
		return nil
	}
	if ev := e.event("FailedResourceClaimCreation"); ev != nil && slices.Contains(e.pod.Claims, "") {
		return &Diagnosis{Cause: ClaimMissing, Certain: true,
			Why:      "its ResourceClaim cannot be made from the template",
			Evidence: []string{eventText(*ev)},
			Remedy:   fmt.Sprintf("correct the template: `kubectl get resourceclaimtemplates -n %s`", e.pod.Namespace)}
	}
	if _, unread := e.s.IsUnknown(cluster.PartClaims); unread || e.verdict.text == "" && e.isYoung() {
		return nil
	}
	var said []string
	if e.verdict.text != "" {
		said = []string{e.verdict.evidence()}
	} else {
		said = []string{"no scheduler has said anything about it, which it does not of a pod whose claim is missing"}
	}
	for _, name := range e.pod.Claims {
		ref := e.pod.Namespace + "/" + name
		switch {
		case name == "":
			return &Diagnosis{Cause: ClaimMissing,
				Why:      "a ResourceClaim has not been made for it yet of " + few(e.pod.ClaimTemplates),
				Evidence: said,
				Remedy:   fmt.Sprintf("see whether the template is there: `kubectl get resourceclaimtemplates -n %s`; then the log of kube-controller-manager", e.pod.Namespace)}
		case e.claims[ref] == nil:
			return &Diagnosis{Cause: ClaimMissing, Certain: true,
				Why:      "it uses resourceclaim/" + ref + ", and there is none",
				Evidence: said,
				Remedy:   "make the claim, or have the pod use another"}
		}
	}
	return nil
}

// notDevices is a pod that no device keeps waiting: the scheduler's reasons are others.
func notDevices(e *exam) *Diagnosis {
	if !e.waits() || len(e.verdict.refusals) == 0 {
		return nil
	}
	nowhere := e.nowhere()
	var others []string
	lacking := 0
	for _, r := range e.verdict.refusals {
		switch {
		case e.ofDevices(r):
			lacking += r.nodes
		case !nowhere && strings.Contains(r.text, "didn't match Pod's node affinity/selector"):
			// The pod does not want these nodes, and others could have it.
		default:
			others = append(others, fmt.Sprintf("%d %s", r.nodes, r.text))
		}
	}
	if len(others) == 0 || lacking > 0 && !nowhere && (len(e.free()) == 0 || lacking > e.bystanders()) {
		return nil
	}
	return &Diagnosis{Cause: NotDevices, Certain: lacking == 0,
		Why:      "not a matter of devices: of its nodes the scheduler says " + strings.Join(others, ", "),
		Evidence: append([]string{e.verdict.evidence()}, e.free()...),
		Remedy:   fmt.Sprintf("see what it asks of its node besides devices: `kubectl describe pod -n %s %s`", e.pod.Namespace, e.pod.Name)}
}

// bystanders is how many nodes without devices the scheduler may have refused for that.
func (e *exam) bystanders() int {
	most := 0
	for _, w := range e.wishes() {
		most = max(most, e.supply(w).bystanders)
	}
	return most
}

// nowhere says that no node with devices has the labels that the pod requires.
func (e *exam) nowhere() bool {
	return slices.ContainsFunc(e.wishes(), func(w wish) bool {
		sup := e.supply(w)
		return len(sup.open)+len(sup.shut) == 0
	})
}

// ofDevices says that a refusal is for devices.
func (e *exam) ofDevices(r refusal) bool {
	name, short := strings.CutPrefix(r.text, insufficient)
	return short && cluster.IsExtended(corev1.ResourceName(name)) || strings.Contains(r.text, cannotAllocate) ||
		strings.Contains(r.text, "cannot fit resource") || strings.HasPrefix(r.text, "resourceclaim not available")
}
