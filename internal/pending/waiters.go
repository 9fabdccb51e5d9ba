package pending

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// mostWaiters is how many owners are told one by one.
const mostWaiters = 10

// Waiters are the pods that ask for the resource and wait or fail, by their owners.
type Waiters struct {
	// Owners are at most 10, those whose pods wait longest first.
	Owners []Waiter `json:"owners"`
	// More is how many other owners there are, and MorePods the pods of these.
	More     int `json:"more,omitempty"`
	MorePods int `json:"morePods,omitempty"`
}

// Waiter is an owner whose pods wait. Its oldest pod was looked at, without its events.
type Waiter struct {
	// Owner is what a person edits: "deployment/team/train".
	Owner string `json:"owner"`
	// Pods is how many wait or fail, and Pod the one that was looked at, "namespace/name".
	Pods    int    `json:"pods"`
	Pod     string `json:"pod"`
	Cause   Cause  `json:"cause"`
	Why     string `json:"why"`
	Remedy  string `json:"remedy,omitempty"`
	Certain bool   `json:"certain"`
}

// WaitersOf looks at all pods, or if there is a pool at those that are on its nodes or may
// go there. It is nil if none waits.
func WaitersOf(s *cluster.Snapshot, pool *cluster.NodePool, o Options) *Waiters {
	w := waiting{s: s, o: o}
	if pool != nil {
		w.on = map[string]*corev1.Node{}
		for _, name := range pool.Nodes {
			if n, ok := s.Node(name); ok {
				w.on[name] = n
			}
		}
	}
	byOwner := map[string][]*cluster.Pod{}
	var order []string
	for i := range s.Pods {
		p := &s.Pods[i]
		if !p.Asks(o.Resource) || p.IsHelper() || !w.counts(p) || !w.near(p) {
			continue
		}
		owner := ownerOf(p)
		if byOwner[owner] == nil {
			order = append(order, owner)
		}
		byOwner[owner] = append(byOwner[owner], p)
	}
	if len(order) == 0 {
		return nil
	}
	for _, pods := range byOwner {
		slices.SortStableFunc(pods, byAge)
	}
	slices.SortStableFunc(order, func(a, b string) int { return byAge(byOwner[a][0], byOwner[b][0]) })
	return w.told(order, byOwner)
}

type waiting struct {
	s  *cluster.Snapshot
	o  Options
	on map[string]*corev1.Node
}

func byAge(a, b *cluster.Pod) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// counts says whether a pod waits, or has been refused. One that starts as every pod does
// is left to itself for a while.
func (w waiting) counts(p *cluster.Pod) bool {
	e := exam{o: w.o, pod: p}
	switch {
	case p.Phase == corev1.PodSucceeded:
		return false
	case p.Phase == corev1.PodFailed:
		return e.lacking()
	case p.Terminating:
		return p.Node != "" && p.Bridge != nil
	case p.Phase == corev1.PodPending && !e.isYoung():
		return true
	}
	return p.Waiting != "" && !starting(p.Waiting) && !p.Ready
}

// near says whether the pod is on one of the nodes or may go to one.
func (w waiting) near(p *cluster.Pod) bool {
	if w.on == nil {
		return true
	}
	if p.Node != "" {
		return w.on[p.Node] != nil
	}
	for _, n := range w.on {
		if p.Placement == nil || p.Placement.Admits(n) {
			return true
		}
	}
	return false
}

// told diagnoses the first pod of each owner, and leaves out whose nothing is wrong with.
func (w waiting) told(order []string, byOwner map[string][]*cluster.Pod) *Waiters {
	st, out := newStock(w.s), &Waiters{}
	for _, owner := range order {
		pods := byOwner[owner]
		if len(out.Owners) == mostWaiters {
			out.More++
			out.MorePods += len(pods)
			continue
		}
		d := diagnose(st, pods[0], nil, w.o)
		if d.Cause == None {
			continue
		}
		out.Owners = append(out.Owners, Waiter{Owner: owner, Pods: len(pods), Pod: d.Pod, Cause: d.Cause, Why: d.Why, Remedy: d.Remedy, Certain: d.Certain})
	}
	if len(out.Owners) == 0 {
		return nil
	}
	return out
}
