package pending

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

// where are the open places of a kind.
func (s *supply) where(is func(*place) bool) []place {
	var out []place
	for i := range s.open {
		if is(&s.open[i]) {
			out = append(out, s.open[i])
		}
	}
	return out
}

// has says whether an open place is of a kind, any whether one is, closed ones too.
func (s *supply) has(is func(*place) bool) bool { return len(s.where(is)) > 0 }

func (s *supply) any(is func(*place) bool) bool {
	return s.has(is) || slices.ContainsFunc(s.shut, func(p place) bool { return is(&p) })
}

// driverWanted says that the class names a driver.
func (s *supply) driverWanted() bool {
	return slices.ContainsFunc(conditionsOf(s.selector()), func(c condition) bool { return c.driver })
}

// has is how many devices the place has for the wish, by what the scheduler counts there;
// left is how many of them are free.
func (p *place) has() int64 {
	if p.byPlugin() {
		return p.allocatable
	}
	return int64(p.selected)
}

func (p *place) left() int64 {
	if p.byPlugin() {
		return max(p.allocatable-p.asked, 0)
	}
	return int64(p.free)
}

func names(list []place) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].node.Name
	}
	return out
}

func devices(list []resourcev1.ResourceSlice) int {
	n := 0
	for i := range list {
		n += len(list[i].Spec.Devices)
	}
	return n
}

// driverOn says how the driver does on a node.
func (st *stock) driverOn(node string) string {
	var out []string
	for _, d := range st.inv.Drivers {
		if slices.Contains(d.Nodes, node) {
			out = append(out, st.podOf(d.DaemonSet.Namespace, d.DaemonSet.Name, node))
		}
	}
	if len(out) == 0 {
		return "no driver's pod runs there"
	}
	return strings.Join(out, "; ")
}

// podOf is how a DaemonSet's pod on a node does.
func (st *stock) podOf(namespace, set, node string) string {
	for _, p := range st.daemons[node] {
		if p.Namespace != namespace || p.Owner.Name != set {
			continue
		}
		if p.Ready {
			return "driver pod " + p.Ref() + " is ready"
		}
		return strings.TrimSpace("driver pod " + p.Ref() + " is not ready " + p.Waiting)
	}
	return "daemonset/" + namespace + "/" + set + " has no pod there"
}

// driverReady says whether a driver that serves the given name has a pod on the node that
// is ready.
func (st *stock) driverReady(driver, node string) bool {
	return slices.ContainsFunc(st.inv.DriversFor(driver), func(d gate.DriverDaemonSet) bool {
		return slices.ContainsFunc(st.daemons[node], func(p *cluster.Pod) bool {
			return p.Namespace == d.DaemonSet.Namespace && p.Owner.Name == d.DaemonSet.Name && p.Ready && !p.Terminating
		})
	})
}

// holders are who holds devices on the places, by what a person edits: those with the
// most first.
func (e *exam) holders(at []place, w wish) []string {
	type use struct {
		by   string
		pods int
	}
	by := map[string]*use{}
	add := func(who string) {
		if by[who] == nil {
			by[who] = &use{by: who}
		}
		by[who].pods++
	}
	for i := range at {
		p := &at[i]
		if p.byPlugin() {
			for _, u := range e.usersOf(w.resource)[p.node.Name] {
				add(ownerOf(u))
			}
			continue
		}
		for _, c := range p.holders {
			add(e.userOf(c))
		}
	}
	all := slices.SortedFunc(maps.Values(by), func(a, b *use) int {
		return cmp.Or(cmp.Compare(b.pods, a.pods), cmp.Compare(a.by, b.by))
	})
	var out []string
	for _, u := range all {
		line := "held by " + u.by
		if !strings.HasPrefix(u.by, "pod/") {
			line += " (" + words.Count(u.pods, "pod") + ")"
		}
		out = append(out, line)
	}
	return untilTold(out)
}

// userOf is whose pods a claim is for.
func (e *exam) userOf(c *resourcev1.ResourceClaim) string {
	for _, r := range c.Status.ReservedFor {
		for i := range e.s.Pods {
			if p := &e.s.Pods[i]; p.UID == r.UID {
				return ownerOf(p)
			}
		}
	}
	return "resourceclaim/" + c.Namespace + "/" + c.Name
}

// ownerOf is what a person edits to change a pod: "deployment/team/train".
func ownerOf(p *cluster.Pod) string {
	o := p.WorkloadOwner()
	if o.Kind == "" || p.Static {
		return "pod/" + p.Ref()
	}
	return strings.ToLower(o.Kind) + "/" + p.Namespace + "/" + o.Name
}
