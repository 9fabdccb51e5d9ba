package checks

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// workloadParts are what askers needs beside the pods.
func workloadParts() []string {
	return []string{cluster.PartDeployments, cluster.PartStatefulSets, cluster.PartJobs, cluster.PartCronJobs}
}

// movers are the pods with devices that the operation ends on its nodes and that
// something may make again: those of DaemonSets and static pods are DRM007's. They are
// pointers into the views, of which a fleet has tens of thousands.
func (in Input) movers() []*cluster.Pod {
	if in.moving != nil {
		return in.moving
	}
	out := []*cluster.Pod{} // not nil: gathered, if none
	for _, v := range in.targets() {
		holds := in.holding(v)
		for i := range v.Pods {
			if p := &v.Pods[i]; !p.Static && p.Owner.Kind != "DaemonSet" && holds(p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// askers collects what look finds in the pods that will ask for devices where the
// operation is at work: those that are moved, those that wait for a node, and the
// templates of workloads that have neither. look returns "" where nothing is to be said.
func (in Input) askers(look func(p *cluster.Pod) string) ownerGroups {
	out := ownerGroups{}
	seen := map[string]bool{}
	take := func(p *cluster.Pod) {
		seen[ownerObject(p)] = true
		if evidence := look(p); evidence != "" {
			out.add(p, evidence)
		}
	}
	for _, p := range in.movers() {
		take(p)
	}
	places := in.reach()
	for i := range in.Snapshot.Pods {
		p := &in.Snapshot.Pods[i]
		if p.Node == "" && !p.Finished() && !p.IsHelper() && p.Owner.Kind != "DaemonSet" && in.asks(p) && places.admit(p.NodeLabels) {
			take(p)
		}
	}
	for _, w := range in.templates(seen) {
		if evidence := look(&w.Template); evidence != "" {
			out.addTemplate(w, evidence)
		}
	}
	return out
}

// templates are the workloads that may make pods with devices on the operation's nodes
// and that are not among the objects already seen: they are scaled to zero, suspended,
// or before their time, or their pods run elsewhere.
func (in Input) templates(seen map[string]bool) []*cluster.Workload {
	places := in.reach()
	var out []*cluster.Workload
	for i := range in.Snapshot.Workloads {
		w := &in.Snapshot.Workloads[i]
		if w.Finished || seen[w.Ref()] || w.Owner.Kind == cluster.KindCronJob { // whose own template says it
			continue
		}
		t := &w.Template
		if (in.asks(t) || len(t.Claims) > 0 || implicit(t) != "") && places.admit(t.NodeLabels) {
			out = append(out, w)
		}
	}
	return out
}

// asks says whether a pod asks for a resource of the pool's kind of devices.
func (in Input) asks(p *cluster.Pod) bool {
	return slices.ContainsFunc(p.Requests, func(r cluster.Request) bool { return r.Count > 0 && in.concerns(string(r.Resource)) })
}

// implicit is the name by which a pod asks for a DeviceClass without its extended
// resource name; empty if it asks for none.
func implicit(p *cluster.Pod) corev1.ResourceName {
	for _, r := range p.Requests {
		if strings.HasPrefix(string(r.Resource), cluster.ImplicitResourcePrefix) {
			return r.Resource
		}
	}
	return ""
}

// reach is what labels the operation's nodes have.
type reach struct {
	values map[string]map[string]bool
	count  map[string]int // nodes with the key
	nodes  int
}

func (in Input) reach() reach {
	r := reach{values: map[string]map[string]bool{}, count: map[string]int{}}
	for _, v := range in.targets() {
		r.nodes++
		for key, value := range v.Node.Labels {
			if r.values[key] == nil {
				r.values[key] = map[string]bool{}
			}
			r.values[key][value] = true
			r.count[key]++
		}
	}
	return r
}

// admit says whether the nodes could have a pod with these requirements. What a pod
// requires of one label are often alternatives, so that one that holds is enough.
func (r reach) admit(requirements []corev1.NodeSelectorRequirement) bool {
	return r.nodes > 0 && perKey(requirements, func(q corev1.NodeSelectorRequirement) bool {
		have := r.values[q.Key]
		switch q.Operator {
		case corev1.NodeSelectorOpIn:
			return slices.ContainsFunc(q.Values, func(v string) bool { return have[v] })
		case corev1.NodeSelectorOpExists:
			return r.count[q.Key] > 0
		case corev1.NodeSelectorOpDoesNotExist:
			return r.count[q.Key] < r.nodes
		case corev1.NodeSelectorOpNotIn:
			if r.count[q.Key] < r.nodes {
				return true
			}
			for v := range have {
				if !slices.Contains(q.Values, v) {
					return true
				}
			}
			return false
		default: // Gt, Lt
			return r.count[q.Key] > 0
		}
	})
}

// perKey says whether of each label's requirements one holds. They are sorted by key.
func perKey(requirements []corev1.NodeSelectorRequirement, holds func(corev1.NodeSelectorRequirement) bool) bool {
	for i := 0; i < len(requirements); {
		ok, key := false, requirements[i].Key
		for ; i < len(requirements) && requirements[i].Key == key; i++ {
			ok = ok || holds(requirements[i])
		}
		if !ok {
			return false
		}
	}
	return true
}
