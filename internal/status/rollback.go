package status

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// Rollback says whether a pool could be put back on the device plugin now, as far as
// the plugin is concerned.
type Rollback struct {
	// Result is OK, Failed, or Unknown.
	Result Result `json:"result"`
	// Nodes is how many nodes there are to put back.
	Nodes int `json:"nodes"`
	// Why says what is in the way, or could not be seen.
	Why []string `json:"why,omitempty"`
}

// rollback judges the pool's nodes that are not as they were before a run.
func (g *gatherer) rollback(p cluster.NodePool) *Rollback {
	names := g.namesOf(p)
	var back []*Node
	for i := range g.out.Nodes {
		n := &g.out.Nodes[i]
		if n.Role == cluster.RoleNew {
			continue
		}
		own := slices.Contains(names, n.Pool) || n.state == nil && slices.Contains(p.Nodes, n.Name)
		if own && (n.state != nil || n.Mechanism != gate.Plugin) {
			back = append(back, n)
		}
	}
	if into := cluster.WentInto(g.s, p.Name); into != nil {
		return g.rollbackInto(p, into.Name, back)
	}
	if len(back) == 0 {
		return nil
	}
	out := &Rollback{Result: OK, Nodes: len(back)}
	if reason, unknown := g.s.IsUnknown(cluster.PartDaemonSets); unknown {
		out.Result, out.Why = Unknown, []string{"daemonsets could not be read: " + reason}
		return out
	}
	var plugins []*appsv1.DaemonSet
	for _, d := range g.inv.PluginsFor(g.o.Resource) {
		if d.Role == gate.DevicePlugin {
			plugins = append(plugins, d.DaemonSet)
		}
	}
	out.Why = g.notLanding(plugins, back)
	if len(out.Why) > 0 {
		out.Why = append(out.Why, g.editedAndGone()...)
	}
	for _, ds := range plugins {
		if why := g.notRunning(ds); why != "" {
			out.Why = append(out.Why, why)
		}
	}
	var unread []string
	for _, n := range back {
		if n.Problem != "" {
			unread = append(unread, n.Name)
		}
	}
	if len(out.Why) > 0 {
		out.Result = Failed
	} else if len(unread) > 0 {
		out.Result, out.Why = Unknown, []string{"the record of node " + few(unread) + " cannot be read"}
	} else if reason, unknown := g.s.IsUnknown(cluster.PartPods); unknown {
		out.Result, out.Why = Unknown, []string{"whether the plugin's image runs is not known: pods could not be read: " + reason}
	}
	return out
}

// notLanding says on which nodes no plugin would come back, and why.
func (g *gatherer) notLanding(plugins []*appsv1.DaemonSet, back []*Node) []string {
	if len(plugins) == 0 {
		return []string{fmt.Sprintf("no DaemonSet serves %s any more", g.o.Resource)}
	}
	var order []string
	nodes := map[string][]string{} // why → nodes
	for _, n := range back {
		node, ok := g.s.Node(n.Name)
		if !ok {
			continue
		}
		var reasons []string
		for _, ds := range plugins {
			lands, why := gate.Lands(ds, n.gate.With(node, gate.Plugin))
			if lands {
				reasons = nil
				break
			}
			reasons = append(reasons, fmt.Sprintf("daemonset/%s/%s: %s", ds.Namespace, ds.Name, why))
		}
		if len(reasons) == 0 {
			continue
		}
		why := strings.Join(reasons, "; ")
		if nodes[why] == nil {
			order = append(order, why)
		}
		nodes[why] = append(nodes[why], n.Name)
	}
	var out []string
	for _, why := range order {
		out = append(out, "the plugin would not come back on "+few(nodes[why])+": "+why)
	}
	return out
}

// editedAndGone are the DaemonSets that prepare edited and that are not there any more.
func (g *gatherer) editedAndGone() []string {
	journal := g.s.Journal("")
	if journal == nil || journal.Shared == nil {
		return nil
	}
	var out []string
	for _, pre := range journal.Shared.PreImages {
		if pre.Path != gate.AffinityPath || slices.ContainsFunc(g.s.DaemonSets, func(ds appsv1.DaemonSet) bool { return ds.UID == pre.Object.UID }) {
			continue
		}
		text := fmt.Sprintf("daemonset/%s/%s, which prepare edited, is gone", pre.Object.Namespace, pre.Object.Name)
		if slices.ContainsFunc(g.s.DaemonSets, func(ds appsv1.DaemonSet) bool {
			return ds.Namespace == pre.Object.Namespace && ds.Name == pre.Object.Name
		}) {
			text = fmt.Sprintf("daemonset/%s/%s was made anew after prepare had edited it", pre.Object.Namespace, pre.Object.Name)
		}
		out = append(out, text)
	}
	return out
}

// notRunning says whether the plugin has pods elsewhere and none of them runs: its
// image is gone, or it fails. Where it has none, nothing can be said.
func (g *gatherer) notRunning(ds *appsv1.DaemonSet) string {
	var waiting []string
	for i := range g.s.Pods {
		p := &g.s.Pods[i]
		if p.Owner.Kind != "DaemonSet" || p.Namespace != ds.Namespace || p.Owner.Name != ds.Name || p.Terminating {
			continue
		}
		if p.Ready {
			return ""
		}
		waiting = append(waiting, strings.TrimSpace("pod "+p.Ref()+" on node "+p.Node+" "+p.Waiting))
	}
	if len(waiting) == 0 {
		return ""
	}
	return fmt.Sprintf("daemonset/%s/%s: none of its pods is ready: %s", ds.Namespace, ds.Name, few(waiting))
}
