package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

// indexed gathers the views of the nodes that the operation is about, once.
func (in Input) indexed() Input {
	in.views = in.Snapshot.Views(in.nodes()...)
	in.budgets = cluster.IndexBudgets(in.Snapshot.Budgets)
	in.held, in.evicted = map[string][]cluster.Pod{}, map[string][]cluster.Pod{}
	in.sorted = nil
	for _, name := range slices.Sorted(maps.Keys(in.views)) {
		in.sorted = append(in.sorted, in.views[name])
	}
	in.left = slices.DeleteFunc(slices.Clone(in.sorted), in.done)
	return in
}

// nodes are the pool's nodes; without a pool, those that have devices.
func (in Input) nodes() []string {
	if len(in.Pool.Nodes) > 0 || in.Other.Name != "" { // a pool of which no node is left has none
		return in.Pool.Nodes
	}
	publishing := map[string]bool{}
	for i := range in.Snapshot.Slices {
		if s := &in.Snapshot.Slices[i]; s.Spec.Driver == in.Driver && s.Spec.NodeName != nil {
			publishing[*s.Spec.NodeName] = true
		}
	}
	var out []string
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		if publishing[n.Name] || (cluster.NodeView{Node: n}).HasDevices(in.Resource, in.Driver) {
			out = append(out, n.Name)
		}
	}
	return out
}

// seen are the views of the operation's nodes, by name.
func (in Input) seen() []cluster.NodeView {
	if in.views == nil {
		in = in.indexed()
	}
	return in.sorted
}

// targets are the views of the nodes that the operation has still to work on: a
// migration passes over nodes that it has opened, a rollback over those that were
// never switched, and Verify over those that are on the plugin.
func (in Input) targets() []cluster.NodeView {
	if in.views == nil {
		in = in.indexed()
	}
	return in.left
}

// HasTargets says whether there is a node that the operation has to do with.
func (in Input) HasTargets() bool { return len(in.targets()) > 0 }

// done says that nothing is left to do on a node.
func (in Input) done(v cluster.NodeView) bool {
	st, err := cluster.ParseNodeState(v.Node)
	switch in.Operation {
	case Migrate:
		state, _ := in.Gate.StateOf(v.Node.Labels)
		return state == gate.DRA && err == nil && st != nil && st.Operation == Migrate && st.OpenedAt != nil
	case Rollback:
		own, known := gate.Switched(v.Node.Labels)
		return known && own == gate.Plugin && err == nil && st == nil
	case Verify:
		g, known := in.Inventory.Of(v.Node, in.Resource)
		state, fits := g.StateOf(v.Node.Labels)
		return known && fits && state == gate.Plugin
	case MigrateFrom, MigrateInto, RollbackFrom, RollbackInto:
		return err == nil && in.handled(st)
	default:
		return false
	}
}

// drivers are the names of every driver that leaves a node with the pool's driver.
func (in Input) drivers() []string {
	out := []string{in.Driver}
	for _, d := range in.Inventory.DriversFor(in.Driver) {
		out = append(out, d.DriverNames...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// plugins are the DaemonSets of the resource's plugin that concern the operation's
// nodes: they run on one of them, or would.
func (in Input) plugins() []gate.PluginDaemonSet {
	all := in.Inventory.PluginsFor(in.Resource)
	if len(in.Pool.Nodes) == 0 {
		return all
	}
	views := in.seen()
	return slices.DeleteFunc(all, func(p gate.PluginDaemonSet) bool {
		return !slices.ContainsFunc(views, func(v cluster.NodeView) bool {
			lands, _ := gate.Lands(p.DaemonSet, in.Gate.With(v.Node, gate.Plugin))
			return lands || slices.Contains(p.Nodes, v.Node.Name)
		})
	})
}

// holders are the node's pods with devices: by the plugin, or by a claim of one of
// the drivers. The list is not to be changed.
func (in Input) holders(v cluster.NodeView) []cluster.Pod {
	return remembered(in.held, v, in.findHolders)
}

// remembered gives what find finds on a node, and finds it but once: many checks ask for
// the same of thousands of nodes.
func remembered(known map[string][]cluster.Pod, v cluster.NodeView, find func(cluster.NodeView) []cluster.Pod) []cluster.Pod {
	if pods, ok := known[v.Node.Name]; ok {
		return pods
	}
	pods := find(v)
	if known != nil {
		known[v.Node.Name] = pods
	}
	return pods
}

func (in Input) findHolders(v cluster.NodeView) []cluster.Pod {
	holds := in.holding(v)
	var out []cluster.Pod
	for i := range v.Pods {
		if p := &v.Pods[i]; holds(p) {
			out = append(out, *p)
		}
	}
	return out
}

// holding says of a node's pods whether they are holders.
func (in Input) holding(v cluster.NodeView) func(*cluster.Pod) bool {
	byClaim := in.holdingByClaim(v)
	return func(p *cluster.Pod) bool {
		return !p.Finished() && !p.IsHelper() && (byClaim(p) || cluster.PluginBacked(p, in.Resources, v.Claims))
	}
}

// holdingByClaim says of a node's pods whether a claim of one of the drivers holds a
// device for them.
func (in Input) holdingByClaim(v cluster.NodeView) func(*cluster.Pod) bool {
	using := map[string]bool{}
	for _, c := range v.ClaimsOf(in.drivers()...) {
		for _, user := range c.Users {
			using[c.Namespace+"/"+user] = true
		}
	}
	return func(p *cluster.Pod) bool { return using[p.Ref()] }
}

// evictions are the pods that the drain would evict from the node. The list is not to
// be changed.
func (in Input) evictions(v cluster.NodeView) []cluster.Pod {
	return remembered(in.evicted, v, in.findEvictions)
}

func (in Input) findEvictions(v cluster.NodeView) []cluster.Pod {
	pods := slices.Clone(in.holders(v))
	if verb(in.Operation) == Rollback {
		// A rollback makes no pod give a device of the plugin back: one that is there, on a
		// node that was closed and not switched, keeps it.
		byClaim := in.holdingByClaim(v)
		pods = slices.DeleteFunc(pods, func(p cluster.Pod) bool { return !byClaim(&p) })
	}
	if in.Drain == "all" {
		pods = slices.DeleteFunc(slices.Clone(v.Pods), func(p cluster.Pod) bool { return p.Finished() || p.IsHelper() })
	}
	return slices.DeleteFunc(pods, func(p cluster.Pod) bool { return p.Static || p.Terminating || p.Owner.Kind == "DaemonSet" })
}

// nodeGroups collects nodes for which there is the same to say, so that 200 nodes
// with one kubelet version are one finding.
type nodeGroups map[string][]string

func (g nodeGroups) add(evidence, node string) { g[evidence] = append(g[evidence], node) }

// findings makes one finding of each group.
func (g nodeGroups) findings(in Input, base Finding) []Finding {
	var out []Finding
	for _, evidence := range slices.Sorted(maps.Keys(g)) {
		nodes := g[evidence]
		slices.Sort(nodes)
		f := base
		f.Object, f.Message = "node/"+nodes[0], evidence
		if len(nodes) > 1 {
			if f.Object, f.Message = in.poolObject(), nodeList(nodes)+": "+evidence; f.Object == allNodes {
				f.Message = few(nodes) + ": " + evidence
			}
		}
		f.Remedy = forNodes(f.Remedy, nodes)
		out = append(out, f)
	}
	return out
}

// forNodes puts the nodes' names where a remedy has NODE: kubectl takes several.
func forNodes(remedy string, nodes []string) string {
	if !strings.Contains(remedy, placeNode) {
		return remedy
	}
	// A field selector takes one.
	remedy = strings.ReplaceAll(remedy, "="+placeNode, "="+nodes[0])
	if !strings.Contains(remedy, placeNode) {
		return remedy
	}
	if len(nodes) <= mostNames {
		return strings.ReplaceAll(remedy, placeNode, strings.Join(nodes, " "))
	}
	return strings.ReplaceAll(remedy, placeNode, strings.Join(nodes[:mostNames], " ")) +
		fmt.Sprintf("; so for the %d nodes that are not named here", len(nodes)-mostNames)
}

// placeNode stands in a remedy for the names of the nodes that it is about.
const placeNode = "NODE"

// nodeList names up to five nodes.
func nodeList(nodes []string) string {
	noun := "node "
	if len(nodes) > 1 {
		noun = "nodes "
	}
	return noun + few(nodes)
}

// mostNames is how many objects of one kind a finding names.
const mostNames = 5

// few names up to five things and counts the rest.
func few(names []string) string {
	return words.Few(mostNames, names)
}

func podObject(p *cluster.Pod) string { return "pod/" + p.Ref() }

func daemonSetObject(ds *appsv1.DaemonSet) string {
	return "daemonset/" + ds.Namespace + "/" + ds.Name
}

// poolObject is the pool, or all nodes that the operation is about.
func (in Input) poolObject() string {
	if in.Pool.Name == "" {
		return allNodes
	}
	return "pool/" + in.Pool.Name
}

// allNodes is the object of what is found of several nodes that are no pool.
const allNodes = "nodes"

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
