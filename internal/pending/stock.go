package pending

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// stock is what a cluster has, indexed once for any number of diagnoses.
type stock struct {
	s    *cluster.Snapshot
	inv  gate.Inventory
	node map[string]*corev1.Node
	// slices are each node's, those that several nodes share among them.
	slices map[string][]resourcev1.ResourceSlice
	// claims are by "namespace/name".
	claims map[string]*resourcev1.ResourceClaim
	// held is the claim that holds a device.
	held map[device]*resourcev1.ResourceClaim
	// daemons are the DaemonSets' pods, by node.
	daemons map[string][]*cluster.Pod
	// users are the pods on each node that count against a resource there.
	users map[string]map[string][]*cluster.Pod
	// matches are what classes select of all that is published, supplies what there is for
	// a name and a placement: pods that wait are many, and mostly alike.
	matches  map[string]match
	supplies map[string]*supply
}

// match is what a class selects.
type match struct {
	selected map[device]bool
	failure  string
}

type device struct{ driver, pool, name string }

func newStock(s *cluster.Snapshot) *stock {
	st := &stock{
		s: s, inv: gate.Detect(s),
		node: map[string]*corev1.Node{}, slices: map[string][]resourcev1.ResourceSlice{},
		claims: map[string]*resourcev1.ResourceClaim{}, held: map[device]*resourcev1.ResourceClaim{},
		daemons: map[string][]*cluster.Pod{}, users: map[string]map[string][]*cluster.Pod{},
		matches: map[string]match{}, supplies: map[string]*supply{},
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Node != "" && p.Owner.Kind == "DaemonSet" && !p.Finished() {
			st.daemons[p.Node] = append(st.daemons[p.Node], p)
		}
	}
	for i := range s.Nodes {
		st.node[s.Nodes[i].Name] = &s.Nodes[i]
	}
	for i := range s.Slices {
		for _, name := range st.nodesOf(&s.Slices[i]) {
			st.slices[name] = append(st.slices[name], s.Slices[i])
		}
	}
	for i := range s.Claims {
		c := &s.Claims[i]
		st.claims[c.Namespace+"/"+c.Name] = c
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.AdminAccess == nil || !*r.AdminAccess { // which holds nothing
				st.held[device{r.Driver, r.Pool, r.Device}] = c
			}
		}
	}
	return st
}

// nodesOf are the nodes on which a slice's devices are.
func (st *stock) nodesOf(s *resourcev1.ResourceSlice) []string {
	if s.Spec.NodeName != nil {
		return []string{*s.Spec.NodeName}
	}
	var selector *nodeaffinity.NodeSelector
	if s.Spec.NodeSelector != nil {
		var err error
		if selector, err = nodeaffinity.NewNodeSelector(s.Spec.NodeSelector); err != nil {
			return nil
		}
	}
	var out []string
	for i := range st.s.Nodes {
		if n := &st.s.Nodes[i]; selector == nil || selector.Match(n) {
			out = append(out, n.Name)
		}
	}
	return out
}

// class finds a DeviceClass by name.
func (st *stock) class(name string) *resourcev1.DeviceClass {
	for i := range st.s.Classes {
		if st.s.Classes[i].Name == name {
			return &st.s.Classes[i]
		}
	}
	return nil
}

// usersOf are the pods that count against a resource on each node, whatever serves them
// (pkg/scheduler/framework/types.go, v1.37.2).
func (st *stock) usersOf(resource string) map[string][]*cluster.Pod {
	if known, ok := st.users[resource]; ok {
		return known
	}
	out := map[string][]*cluster.Pod{}
	for i := range st.s.Pods {
		if p := &st.s.Pods[i]; p.Node != "" && !p.Finished() && p.Asks(resource) {
			out[p.Node] = append(out[p.Node], p)
		}
	}
	st.users[resource] = out
	return out
}

// place is a node that the pod could go to, and what it has for a wish.
type place struct {
	node *corev1.Node
	// shut is why the pod does not get there: a cordon or a taint; empty if it does.
	shut string
	// mends says that opening it is this tool's or its user's: not a taint of others.
	mends bool
	// allocatable is what the plugin offers and asked what pods ask of it.
	allocatable, asked int64
	// published are the devices of all drivers, selected those that the class selects; of
	// these free are in no claim, and tainted in none either, but kept back by a taint.
	published, selected, free, tainted int
	taint                              string
	// incomplete says what the driver's pools lack.
	incomplete string
	holders    []*resourcev1.ResourceClaim
}

// byPlugin says that the scheduler counts there by the plugin's number.
func (p *place) byPlugin() bool { return p.allocatable > 0 }

// name is the node as messages name it.
func (p *place) name() string { return "node/" + p.node.Name }

// supply is what the nodes have that the pod could go to.
type supply struct {
	wish
	// fits is how many nodes have the labels that the pod requires.
	fits int
	// open and shut are those of them with devices, or that had some; bystanders is how
	// many open ones have none.
	open, shut []place
	bystanders int
	// slices are those of all nodes that fit; failure is how the class's selectors fail on
	// them, if so.
	slices  []resourcev1.ResourceSlice
	failure string
}

// supply gathers what there is for a wish.
func (e *exam) supply(w wish) *supply {
	placement, err := json.Marshal(e.pod.Placement)
	if err != nil {
		placement = []byte(e.pod.UID)
	}
	key := w.what + " " + string(placement)
	known := e.supplies[key]
	if known == nil {
		known = e.gather(w)
		e.supplies[key] = known
	}
	out := *known
	out.wish = w // another pod may ask for more of it
	return &out
}

func (e *exam) gather(w wish) *supply {
	out := &supply{wish: w}
	var fit []*corev1.Node
	shared := map[string]bool{}
	for i := range e.s.Nodes {
		n := &e.s.Nodes[i]
		if e.pod.Placement != nil && !e.pod.Placement.Admits(n) {
			continue
		}
		fit = append(fit, n)
		for _, slice := range e.slices[n.Name] {
			if slice.Spec.NodeName == nil && shared[slice.Name] {
				continue
			}
			shared[slice.Name] = true
			out.slices = append(out.slices, slice)
		}
	}
	out.fits = len(fit)
	m := e.match(w, out.slices)
	out.failure = m.failure
	out.put(e, fit, m.selected, e.hasDevices)
	if len(out.open)+len(out.shut) == 0 {
		// Where nothing tells of devices, they are expected where the driver would run.
		out.put(e, fit, m.selected, func(p *place, _ wish) bool { return e.driverLands(p.node) })
	}
	return out
}

// match is what the wish can have of the slices. A class is tried on everything once; if
// it fails somewhere, what counts is whether it fails on these.
func (st *stock) match(w wish, these []resourcev1.ResourceSlice) match {
	if w.class == nil {
		return match{}
	}
	if len(w.selectors) > 0 {
		return tried(w.selector(), these)
	}
	all, known := st.matches[w.className]
	if !known {
		all = tried(w.class, st.s.Slices)
		st.matches[w.className] = all
	}
	if all.failure != "" {
		return tried(w.class, these)
	}
	return all
}

func tried(class *resourcev1.DeviceClass, list []resourcev1.ResourceSlice) match {
	// The compiler bounds the cost of an expression, so there is nothing to cancel.
	m, err := cluster.MatchClass(context.Background(), class, list)
	if err != nil {
		return match{failure: err.Error()}
	}
	return match{selected: idsOf(m), failure: m.Failed}
}

// put sorts the nodes that count into open and shut ones.
func (s *supply) put(e *exam, fit []*corev1.Node, selected map[device]bool, counts func(*place, wish) bool) {
	s.bystanders = 0
	for _, n := range fit {
		p := e.place(n, s.wish, selected)
		switch {
		case !counts(&p, s.wish):
			if p.shut == "" {
				s.bystanders++
			}
		case p.shut == "":
			s.open = append(s.open, p)
		default:
			s.shut = append(s.shut, p)
		}
	}
}

// hasDevices says whether a node has devices for the wish, or had some.
func (e *exam) hasDevices(p *place, w wish) bool {
	if p.allocatable > 0 || p.selected > 0 {
		return true
	}
	view := cluster.NodeView{Node: p.node, Slices: e.slices[p.node.Name]}
	if view.HasDevices(e.o.Resource, e.o.Driver) {
		return true
	}
	_, present := view.Allocatable(w.resource)
	return present
}

// driverLands says whether a DaemonSet would run the driver on a node.
func (e *exam) driverLands(n *corev1.Node) bool {
	return slices.ContainsFunc(e.inv.DriversFor(e.o.Driver), func(d gate.DriverDaemonSet) bool {
		lands, _ := gate.Lands(d.DaemonSet, n)
		return lands
	})
}

// place looks at one node.
func (e *exam) place(n *corev1.Node, w wish, selected map[device]bool) place {
	p := place{node: n}
	p.shut, p.mends = shut(n, e.pod.Placement)
	if w.resource != "" && !strings.HasPrefix(w.resource, cluster.ImplicitResourcePrefix) {
		p.allocatable, _ = cluster.NodeView{Node: n}.Allocatable(w.resource)
		for _, u := range e.usersOf(w.resource)[n.Name] {
			p.asked += u.DevicesNeeded(w.resource)
		}
	}
	own := e.slices[n.Name]
	drivers := map[string]bool{}
	for i := range own {
		drivers[own[i].Spec.Driver] = true
	}
	var missing []string
	holders := map[*resourcev1.ResourceClaim]bool{}
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		devices, incomplete := cluster.DevicesOf(own, driver)
		p.published += len(devices)
		if incomplete != "" && (driver == e.o.Driver || anySelected(devices, driver, selected)) {
			missing = append(missing, incomplete)
		}
		taints := taintsOf(own, driver)
		for _, d := range devices {
			id := device{driver, d.Pool, d.Name}
			if !selected[id] {
				continue
			}
			p.selected++
			if c := e.held[id]; c != nil {
				if !holders[c] {
					holders[c] = true
					p.holders = append(p.holders, c)
				}
				continue
			}
			if t := untolerated(taints[id], w.tolerations); t != "" {
				p.tainted++
				p.taint = t
				continue
			}
			p.free++
		}
	}
	p.incomplete = strings.Join(missing, "; ")
	return p
}

func anySelected(devices cluster.Devices, driver string, selected map[device]bool) bool {
	return slices.ContainsFunc(devices, func(d cluster.Device) bool { return selected[device{driver, d.Pool, d.Name}] })
}

// free is the evidence of devices that the pod could have and does not get.
func (e *exam) free() []string {
	if !e.waits() {
		return nil
	}
	var out []string
	for _, w := range e.wishes() {
		sup := e.supply(w)
		for i := range sup.open {
			switch p := &sup.open[i]; {
			case p.byPlugin() && p.allocatable-p.asked >= w.need:
				out = append(out, fmt.Sprintf("%s: %d of %d %s are free", p.name(), p.allocatable-p.asked, p.allocatable, w.resource))
			case !p.byPlugin() && p.incomplete == "" && int64(p.free) >= w.need:
				out = append(out, fmt.Sprintf("%s: free devices of %s: %d of %d", p.name(), w.selectedBy(), p.free, p.selected))
			}
		}
	}
	return untilTold(out)
}
