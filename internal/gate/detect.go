package gate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// Role is what a DaemonSet of a device plugin does.
type Role string

// A plugin advertises devices; an MPS control daemon serves the GPUs that a plugin
// shares, and has to leave with it.
const (
	DevicePlugin Role = "device-plugin"
	MPSDaemon    Role = "mps-control-daemon"
)

// PluginDaemonSet is a DaemonSet that belongs to a device plugin.
type PluginDaemonSet struct {
	DaemonSet *appsv1.DaemonSet
	Role      Role
	Owner     Owner
	// Evidence says by what it was recognised, for a person to check.
	Evidence []string
	// Resources are the extended resources that it serves, sorted: what its nodes
	// have of what it is known to serve. Empty if it runs nowhere.
	Resources []string
	// Guess is true if nothing but the mount speaks for it and another DaemonSet is
	// as good a candidate for the same resource.
	Guess bool
	// Nodes are the nodes with a pod of it, sorted.
	Nodes []string
	// Gate is how its nodes are moved.
	Gate Gate

	known signature
}

// Serves says whether the resource is served by this DaemonSet, or would be where
// it ran.
func (p PluginDaemonSet) Serves(resource string) bool {
	return slices.Contains(p.Resources, resource) || p.known.serves(resource)
}

// unknown says that no known program was recognised.
func (p PluginDaemonSet) unknown() bool { return p.known.labels == nil && p.known.images == nil }

// DriverDaemonSet is a DaemonSet that runs a DRA driver.
type DriverDaemonSet struct {
	DaemonSet *appsv1.DaemonSet
	Owner     Owner
	Evidence  []string
	// DriverNames are the DRA names that it serves, or may serve, sorted. Empty for
	// an unknown driver that runs nowhere.
	DriverNames []string
	// Lacks are those of DriverNames whose part of the program is switched off: it has
	// a container for each, and this DaemonSet only others.
	Lacks []string
	Nodes []string
}

// Inventory is what hands out devices in a cluster. It is sorted like the Snapshot.
type Inventory struct {
	Plugins []PluginDaemonSet
	Drivers []DriverDaemonSet
}

// PluginsFor are the DaemonSets that have to leave a node before a driver may serve
// the resource there, MPS control daemons included.
func (i Inventory) PluginsFor(resource string) []PluginDaemonSet {
	var out []PluginDaemonSet
	for _, p := range i.Plugins {
		if p.Serves(resource) {
			out = append(out, p)
		}
	}
	return out
}

// DriversFor are the DaemonSets that run the driver. One whose driver is not known
// counts if the tool has placed it.
func (i Inventory) DriversFor(driver string) []DriverDaemonSet {
	var out []DriverDaemonSet
	for _, d := range i.Drivers {
		if slices.Contains(d.DriverNames, driver) || len(d.DriverNames) == 0 && Placed(d.DaemonSet) {
			out = append(out, d)
		}
	}
	return out
}

// ResourcesWith are all extended resources of the plugins that serve resource,
// sorted, resource included: each is a key of its own on a node, and all of them
// have to be at zero before the driver may start.
func (i Inventory) ResourcesWith(resource string) []string {
	out := []string{resource}
	for _, p := range i.PluginsFor(resource) {
		out = append(out, p.Resources...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Detect finds the DaemonSets of device plugins and DRA drivers by what their pods
// do, by what is known of the common ones, and by what their nodes have.
func Detect(s *cluster.Snapshot) Inventory {
	d := &detector{s: s, nodes: map[string]*corev1.Node{}, runs: map[*appsv1.DaemonSet][]string{}}
	for i := range s.Nodes {
		d.nodes[s.Nodes[i].Name] = &s.Nodes[i]
	}
	d.placePods()
	return Inventory{Plugins: d.plugins(), Drivers: d.drivers()}
}

type detector struct {
	s     *cluster.Snapshot
	nodes map[string]*corev1.Node
	runs  map[*appsv1.DaemonSet][]string // the nodes with a pod of it, sorted
}

func (d *detector) placePods() {
	byKey := map[string]*appsv1.DaemonSet{}
	for i := range d.s.DaemonSets {
		ds := &d.s.DaemonSets[i]
		byKey[ds.Namespace+"/"+ds.Name] = ds
	}
	for i := range d.s.Pods {
		p := &d.s.Pods[i]
		ds := byKey[p.Namespace+"/"+p.Owner.Name]
		if p.Owner.Kind == "DaemonSet" && ds != nil && p.Node != "" && !p.Finished() && (ds.UID == "" || ds.UID == p.Owner.UID) {
			d.runs[ds] = append(d.runs[ds], p.Node)
		}
	}
	for ds, nodes := range d.runs {
		slices.Sort(nodes)
		d.runs[ds] = slices.Compact(nodes)
	}
}

func (d *detector) plugins() []PluginDaemonSet {
	var out []PluginDaemonSet
	known := pluginSignatures()
	for i := range d.s.DaemonSets {
		ds := &d.s.DaemonSets[i]
		sig, by, recognised := recognise(ds, known)
		mount, mounts := hostPath(ds, endsIn(DevicePlugins))
		if !mounts && recognised {
			mount, mounts = hostPath(ds, endsIn("kubelet"))
		}
		p := PluginDaemonSet{DaemonSet: ds, Role: DevicePlugin, Owner: OwnerOf(ds), Nodes: d.runs[ds], known: sig}
		switch {
		case recognised && isMPS(ds):
			p.Role = MPSDaemon
			p.Evidence = []string{by, "runs the MPS control daemon"}
		case mounts:
			p.Evidence = []string{"mounts " + mount}
			if recognised {
				p.Evidence = append(p.Evidence, by)
			}
		default:
			continue
		}
		out = append(out, p)
	}
	for i := range out {
		if p := &out[i]; p.known.resources != nil {
			p.Resources = d.resourcesOn(p.Nodes, p.known.serves)
		}
	}
	d.attribute(out)
	for i := range out {
		out[i].Gate = gateOf(&out[i], d.s.DaemonSets)
	}
	return slices.DeleteFunc(out, func(p PluginDaemonSet) bool {
		// What serves nothing that was ever advertised is no device plugin of
		// concern: a monitor that looks at the folder, or one that runs nowhere.
		return p.known.resources == nil && len(p.Resources) == 0 && !Excluded(p.DaemonSet)
	})
}

// resourcesOn are the extended resources in the capacity of the nodes, zero or not,
// and in what a run recorded of them before it switched the plugin off.
func (d *detector) resourcesOn(nodes []string, wanted func(string) bool) []string {
	var out []string
	add := func(r string) {
		if wanted(r) && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	for _, name := range nodes {
		if n := d.nodes[name]; n != nil {
			for r := range n.Status.Capacity {
				if cluster.IsExtended(r) {
					add(string(r))
				}
			}
		}
	}
	for _, r := range d.recorded() {
		add(r)
	}
	slices.Sort(out)
	return out
}

// recorded are the resources that runs wrote down on nodes: on these the plugin
// does not run any more, so that nothing else tells what it served.
func (d *detector) recorded() []string {
	var out []string
	for i := range d.s.Nodes {
		if st, err := cluster.ParseNodeState(&d.s.Nodes[i]); err == nil && st != nil {
			out = append(out, st.Resources...)
		}
	}
	return out
}

// attribute gives the resources that no known plugin serves to the unknown ones:
// to those that run where the resource is advertised, first of all to those that
// run only there.
func (d *detector) attribute(found []PluginDaemonSet) {
	advertised := map[string][]string{} // resource → nodes
	for i := range d.s.Nodes {
		n := &d.s.Nodes[i]
		for r, q := range n.Status.Allocatable {
			if cluster.IsExtended(r) && !q.IsZero() && !d.claimed(found, string(r), n.Name) {
				advertised[string(r)] = append(advertised[string(r)], n.Name)
			}
		}
	}
	for r, nodes := range advertised {
		slices.Sort(nodes)
		var exact, loose []*PluginDaemonSet
		for i := range found {
			p := &found[i]
			if !p.unknown() || !intersect(p.Nodes, nodes) {
				continue
			}
			loose = append(loose, p)
			if subset(p.Nodes, nodes) {
				exact = append(exact, p)
			}
		}
		candidates := exact
		if len(candidates) == 0 {
			candidates = loose
		}
		for _, p := range candidates {
			p.Resources = append(p.Resources, r)
			p.Evidence = append(p.Evidence, fmt.Sprintf("runs on nodes that advertise %s", r))
			p.Guess = p.Guess || len(candidates) > 1
		}
	}
	for i := range found {
		p := &found[i]
		if p.unknown() && Excluded(p.DaemonSet) {
			for _, r := range d.recorded() {
				if !slices.ContainsFunc(found, func(q PluginDaemonSet) bool { return q.known.serves(r) }) {
					p.Resources = append(p.Resources, r)
				}
			}
			p.Evidence = append(p.Evidence, "its node affinity has the tool's expression")
		}
		slices.Sort(p.Resources)
		p.Resources = slices.Compact(p.Resources)
		slices.Sort(p.Evidence[1:])
	}
}

// claimed says whether a known plugin serves the resource on the node.
func (d *detector) claimed(found []PluginDaemonSet, resource, node string) bool {
	return slices.ContainsFunc(found, func(p PluginDaemonSet) bool {
		return p.Role == DevicePlugin && p.known.serves(resource) && has(p.Nodes, node)
	})
}

// isMPS tells an MPS control daemon from the plugin and from GPU Feature Discovery,
// which all have the same image and in the chart the same labels.
func isMPS(ds *appsv1.DaemonSet) bool {
	const daemon = "mps-control-daemon"
	return slices.ContainsFunc(containers(ds), func(c corev1.Container) bool {
		return strings.HasPrefix(c.Name, daemon) || slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool {
			return path.Base(arg) == daemon
		})
	})
}

// IsDriver says whether a DaemonSet registers plugins with the kubelet that are not
// storage drivers: so do DRA drivers, and nothing else that is known.
func IsDriver(ds *appsv1.DaemonSet) bool {
	_, mounts := hostPath(ds, endsIn(PluginsRegistry))
	storage := slices.ContainsFunc(images(ds), func(image string) bool {
		return strings.HasSuffix(repository(image), "node-driver-registrar")
	})
	return mounts && !storage
}

func (d *detector) drivers() []DriverDaemonSet {
	publishes := map[string][]string{} // driver → nodes
	for i := range d.s.Slices {
		if sp := &d.s.Slices[i].Spec; sp.NodeName != nil {
			publishes[sp.Driver] = append(publishes[sp.Driver], *sp.NodeName)
		}
	}
	type candidate struct {
		DriverDaemonSet
		signed bool
	}
	var all []candidate
	known := driverSignatures()
	for i := range d.s.DaemonSets {
		ds := &d.s.DaemonSets[i]
		if !IsDriver(ds) {
			continue
		}
		mount, _ := hostPath(ds, endsIn(PluginsRegistry))
		c := candidate{DriverDaemonSet: DriverDaemonSet{DaemonSet: ds, Owner: OwnerOf(ds), Nodes: d.runs[ds], Evidence: []string{"mounts " + mount}}}
		if sig, by, ok := recognise(ds, known); ok {
			c.signed = true
			c.DriverNames = slices.Clone(sig.drivers)
			c.Lacks = sig.lacks(ds)
			c.Evidence = append(c.Evidence, by)
		}
		all = append(all, c)
	}
	for driver, nodes := range publishes {
		signed := slices.ContainsFunc(all, func(c candidate) bool { return c.signed && slices.Contains(c.DriverNames, driver) })
		for i := range all {
			if c := &all[i]; !signed && !c.signed && intersect(c.Nodes, nodes) && mentions(c.DaemonSet, driver) {
				c.DriverNames = append(c.DriverNames, driver)
				c.Evidence = append(c.Evidence, "runs on nodes with slices of "+driver)
			}
		}
	}
	var out []DriverDaemonSet
	for _, c := range all {
		if len(c.DriverNames) == 0 && !Placed(c.DaemonSet) && c.DaemonSet.Labels[ManagedByLabel] != ManagedBy {
			continue
		}
		slices.Sort(c.DriverNames)
		slices.Sort(c.Evidence[1:])
		out = append(out, c.DriverDaemonSet)
	}
	return out
}

// mentions says that an unknown DaemonSet does what only DRA drivers do: it mounts a
// folder for CDI files, or the kubelet's folder for that driver.
func mentions(ds *appsv1.DaemonSet, driver string) bool {
	_, ok := hostPath(ds, func(p string) bool {
		return path.Base(p) == "cdi" || strings.HasSuffix(p, "/plugins/"+driver)
	})
	return ok
}

// has looks a name up in a sorted list.
func has(sorted []string, name string) bool {
	_, ok := slices.BinarySearch(sorted, name)
	return ok
}

// intersect and subset compare lists of nodes, of which the first is sorted.
func intersect(sorted, other []string) bool {
	return slices.ContainsFunc(other, func(s string) bool { return has(sorted, s) })
}

func subset(of, sorted []string) bool {
	return !slices.ContainsFunc(of, func(s string) bool { return !has(sorted, s) })
}
