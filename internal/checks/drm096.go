package checks

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm096() Check {
	return Check{
		Code:       "DRM096",
		Title:      "Pods come back to a node that is closed",
		Why:        "A node is closed by a cordon and by a taint of this tool, and the scheduler lets a pod through that tolerates both: one with the toleration operator: Exists and no key, for example. Evicted, it is made again by its controller and may be bound to the same node, where devices have just become free, is evicted again, and so on: the drain of the node never ends, and the run stops there at its deadline. What is looked at is pods with devices; with --drain all the others are evicted too, and come back in the same way.",
		Fix:        "Let the workload tolerate the taints of its nodes alone, by their keys, or scale it down for the window.",
		Sources:    []string{"pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go, v1.37.2", "k8s.io/component-helpers/scheduling/corev1, v0.37.2", "cilium/cilium#28549", "cilium/tetragon#3484"},
		Advises:    true,
		Operations: []string{Migrate, Rollback, MigrateFrom, RollbackFrom},
		Needs:      append(workloadParts(), cluster.PartPods, cluster.PartClaims),
		Run: func(in Input) []Finding {
			idle := map[*cluster.Pod]bool{} // templates of which no pod is made as things are
			for i := range in.Snapshot.Workloads {
				if w := &in.Snapshot.Workloads[i]; w.Replicas == 0 || w.Suspended {
					idle[&w.Template] = true
				}
			}
			now, later := ownerGroups{}, ownerGroups{}
			for k, pods := range in.askers(func(p *cluster.Pod) string { return in.returns(p, idle[p]) }) {
				if strings.HasPrefix(k.evidence, idleTemplate) {
					later[k] = pods
				} else {
					now[k] = pods
				}
			}
			out := now.findings(Finding{Code: "DRM096", Severity: Warning})
			for i := range out {
				out[i].Remedy = stayAway(out[i].Object)
			}
			return append(out, later.findings(Finding{Code: "DRM096", Severity: Info, Remedy: "leave it so until the run is over"})...)
		},
	}
}

// idleTemplate begins what is said of a workload that makes no pods as things are.
const idleTemplate = "makes no pods now; those that it would make "

// returns says why a pod's successor may come to a node that is closed; empty if it may
// not, or has none.
func (in Input) returns(p *cluster.Pod, idle bool) string {
	template := p.Name == ""
	if p.Placement == nil || !template && p.Owner.Kind == "" {
		return "" // nothing makes it again
	}
	by := closedTo(p.Placement.Tolerations)
	if by == "" {
		return ""
	}
	if p.Node == "" && (!in.asks(p) && implicit(p) == "" || !in.anyAdmits(p)) {
		return "" // its claims may be for devices of another kind, its place on other nodes
	}
	switch {
	case idle:
		return idleTemplate + "tolerate " + by
	case template:
		return "its pods tolerate " + by + ": they may be bound to a node that is being drained"
	default:
		return "tolerates " + by + ": it may be bound to a node that is being drained"
	}
}

// anyAdmits says that a node of the operation would have the pod if it were open.
func (in Input) anyAdmits(p *cluster.Pod) bool {
	for _, v := range in.targets() {
		if turnsAway(v.Node, p) == "" {
			return true
		}
	}
	return false
}

// closedTo says which taints the tolerations are for that close a node; empty if one of
// them keeps the pod away. A cordon counts as its taint (NodeUnschedulable).
func closedTo(tolerations []corev1.Toleration) string {
	taints := []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, gate.SwitchingTaint()}
	if _, kept := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), taints, tolerations, nil, false); kept {
		return ""
	}
	return fmt.Sprintf("both %s and %s, by which a node is closed", taints[0].Key, taints[1].Key)
}

// stayAway is what keeps the pods of an owner, as a finding names it, off a closed node.
func stayAway(owner string) string {
	const narrow = "let it tolerate the taints of its nodes alone, by their keys"
	parts := strings.Split(owner, "/")
	if len(parts) != 3 { // many of one namespace
		return "let them tolerate the taints of their nodes alone, by their keys, or scale them down or suspend them for the window"
	}
	kind, namespace, name := parts[0], parts[1], parts[2]
	switch kind {
	case "deployment", "statefulset", "replicaset", "replicationcontroller":
		return fmt.Sprintf("%s, or scale it down for the window, after noting how many pods it has: `kubectl scale %s %s -n %s --replicas=0`", narrow, kind, name, namespace)
	case "job", "cronjob":
		return fmt.Sprintf(`let it end first, or suspend it for the window: `+"`kubectl patch %s %s -n %s --type merge -p '"+`{"spec":{"suspend":true}}'`+"`", kind, name, namespace)
	default:
		return fmt.Sprintf("%s, or end it for the window: `kubectl edit %s %s -n %s`", narrow, kind, name, namespace)
	}
}
