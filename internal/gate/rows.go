package gate

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

// Names of the gates, as plans and node records hold them.
const (
	OwnKeyName      = "own-key"
	GPUOperatorName = "gpu-operator"
	GKEName         = "gke"
	DeployLabelName = "deploy-label"
)

// Labels by which the GPU Operator switches its parts of a node.
const deployPlugin, deployValidator = vendor.DeployPlugin, vendor.DeployValidator

// row is one gate and how a DaemonSet is known to have it.
type row struct {
	gate Gate
	// fits says by what a plugin's DaemonSet is seen to heed the gate's labels; empty
	// if it does not. all are the cluster's DaemonSets.
	fits func(p *PluginDaemonSet, all []appsv1.DaemonSet) string
}

// rows are all gates but the own key, which serves where none of them does.
func rows() []row {
	out := []row{
		{
			gate: vendorGate(GPUOperatorName, deployPlugin, "true", "false", map[string]string{deployValidator: "true"}, "false"),
			fits: func(p *PluginDaemonSet, _ []appsv1.DaemonSet) string {
				if p.Owner.Kind != Operator || !strings.HasPrefix(p.Owner.Name, "ClusterPolicy/") || !selects(p.DaemonSet, deployPlugin, "true") {
					return ""
				}
				return fmt.Sprintf("the GPU Operator runs the plugin where %s is true, and leaves a node's own value alone (%s; node selector)", deployPlugin, p.Owner.Evidence)
			},
		},
	}
	for _, v := range vendor.All() {
		if v.OptOut.Label != "" {
			out = append(out, gkeRow(v.OptOut))
		}
	}
	return append(out,
		row{
			gate: vendorGate(DeployLabelName, deployPlugin, "true", "false", nil, ""),
			fits: func(p *PluginDaemonSet, all []appsv1.DaemonSet) string {
				if p.Owner.Kind == Operator || !selects(p.DaemonSet, deployPlugin, "true") || othersMove(p, all, deployPlugin) {
					return ""
				}
				return fmt.Sprintf("the plugin's DaemonSet runs where %s is true (node selector), no operator owns it, and nothing else selects nodes by that label", deployPlugin)
			},
		})
}

// gkeRow is GKE's own plugin of one kind of devices.
func gkeRow(o vendor.OptOut) row {
	return row{
		gate: vendorGate(o.Gate, o.Label, "", "true", nil, ""),
		fits: func(p *PluginDaemonSet, _ []appsv1.DaemonSet) string {
			if p.Owner.Kind != AddonManager || !avoids(p.DaemonSet, o.Label, "true") {
				return ""
			}
			return fmt.Sprintf("GKE keeps its plugin off nodes with %s=true (%s; node affinity); a node that GKE makes anew comes without the label, unless the node pool's configuration has it", o.Label, p.Owner.Evidence)
		},
	}
}

// vendorGate makes the gate of a vendor's label: on is its value with the plugin, off the
// one without; companions are labels that take offCompanion along with it.
func vendorGate(name, key, on, off string, companions map[string]string, offCompanion string) Gate {
	g := Gate{Name: name, Vendor: true, Labels: map[State]map[string]string{
		Plugin:    {key: on, AllocationLabel: ""},
		Switching: {key: off, AllocationLabel: ValueSwitching},
		DRA:       {key: off, AllocationLabel: ValueDRA},
	}}
	for companion, value := range companions {
		g.Companions = append(g.Companions, companion)
		g.Labels[Plugin][companion] = value
		g.Labels[Switching][companion], g.Labels[DRA][companion] = offCompanion, offCompanion
	}
	slices.Sort(g.Companions)
	return g
}

// OwnKey is the gate that needs nothing but the DaemonSets' affinity: the plugin
// avoids every node with the tool's own label, the driver wants it with "dra".
func OwnKey() Gate {
	return Gate{
		Name: OwnKeyName,
		Why:  "the plugin's DaemonSet has no switch of its own, so prepare gives it one by node affinity",
		Labels: map[State]map[string]string{
			Plugin:    {AllocationLabel: ""},
			Switching: {AllocationLabel: ValueSwitching},
			DRA:       {AllocationLabel: ValueDRA},
		},
	}
}

// Gates are all gates, the one that serves any cluster last.
func Gates() []Gate {
	var out []Gate
	for _, r := range rows() {
		out = append(out, r.gate)
	}
	return append(out, OwnKey())
}

// Named finds a gate by its name.
func Named(name string) (Gate, bool) {
	for _, g := range Gates() {
		if g.Name == name {
			return g, true
		}
	}
	return Gate{}, false
}

// gateOf chooses the gate of a plugin's DaemonSet.
func gateOf(p *PluginDaemonSet, all []appsv1.DaemonSet) Gate {
	for _, r := range rows() {
		if why := r.fits(p, all); why != "" {
			g := r.gate
			g.Why = why
			return g
		}
	}
	g := OwnKey()
	if p.Owner.Owned() {
		g.Why = fmt.Sprintf("the plugin's DaemonSet belongs to %s (%s) and has no switch of its own, so its owner gives it one by node affinity", p.Owner, p.Owner.Evidence)
	}
	return g
}

// Choice is a gate, and for which DaemonSets it was chosen.
type Choice struct {
	Gate Gate
	// For are DaemonSets, as namespace/name; empty if the own key is all that is left.
	For []string
}

// For chooses the gates of nodes by the plugin's DaemonSets that land on them, sorted
// as Gates are. There is always one: the own key, if no DaemonSet lands there. More
// than one means that the nodes cannot be moved by one run.
func (i Inventory) For(resource string, nodes ...*corev1.Node) []Choice {
	by := map[string]*Choice{}
	for _, p := range i.PluginsFor(resource) {
		concerned := slices.ContainsFunc(nodes, func(n *corev1.Node) bool {
			lands, _ := Lands(p.DaemonSet, p.Gate.With(n, Plugin))
			return lands || slices.Contains(p.Nodes, n.Name)
		})
		if len(nodes) > 0 && !concerned {
			continue
		}
		c := by[p.Gate.Name]
		if c == nil {
			c = &Choice{Gate: p.Gate}
			by[p.Gate.Name] = c
		}
		c.For = append(c.For, p.DaemonSet.Namespace+"/"+p.DaemonSet.Name)
	}
	var out []Choice
	for _, g := range Gates() {
		if c := by[g.Name]; c != nil {
			out = append(out, *c)
		}
	}
	if len(out) == 0 {
		out = []Choice{{Gate: OwnKey()}}
	}
	return out
}

// Recorded are the names of the gates by which runs have moved these nodes, and one
// node of each.
func Recorded(nodes ...*corev1.Node) map[string]string {
	out := map[string]string{}
	for _, n := range nodes {
		if st, err := cluster.ParseNodeState(n); err == nil && st != nil && st.Gate != "" && out[st.Gate] == "" {
			out[st.Gate] = n.Name
		}
	}
	return out
}

// selects says that a DaemonSet runs only where the label has the value.
func selects(ds *appsv1.DaemonSet, key, value string) bool {
	if v, ok := ds.Spec.Template.Spec.NodeSelector[key]; ok {
		return v == value
	}
	return everyTerm(ds, func(e corev1.NodeSelectorRequirement) bool {
		return e.Key == key && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 && e.Values[0] == value
	})
}

// avoids says that a DaemonSet runs nowhere where the label has the value.
func avoids(ds *appsv1.DaemonSet, key, value string) bool {
	return everyTerm(ds, func(e corev1.NodeSelectorRequirement) bool {
		return e.Key == key && (e.Operator == corev1.NodeSelectorOpDoesNotExist || e.Operator == corev1.NodeSelectorOpNotIn && slices.Contains(e.Values, value))
	})
}

// everyTerm says that each term which matches any node has such an expression.
func everyTerm(ds *appsv1.DaemonSet, is func(corev1.NodeSelectorRequirement) bool) bool {
	sel := required(ds.Spec.Template.Spec.Affinity)
	if sel == nil {
		return false
	}
	some := false
	for i := range sel.NodeSelectorTerms {
		t := &sel.NodeSelectorTerms[i]
		if blank(t) {
			continue
		}
		if some = true; !slices.ContainsFunc(t.MatchExpressions, is) {
			return false
		}
	}
	return some
}

// othersMove says that a label moves other DaemonSets' pods than the plugin's own.
func othersMove(p *PluginDaemonSet, all []appsv1.DaemonSet, key string) bool {
	return slices.ContainsFunc(all, func(ds appsv1.DaemonSet) bool {
		return (ds.Namespace != p.DaemonSet.Namespace || ds.Name != p.DaemonSet.Name) && !isMPS(&ds) && uses(&ds, key)
	})
}

// uses says that a DaemonSet's placement depends on a label.
func uses(ds *appsv1.DaemonSet, key string) bool {
	if _, ok := ds.Spec.Template.Spec.NodeSelector[key]; ok {
		return true
	}
	sel := required(ds.Spec.Template.Spec.Affinity)
	return sel != nil && slices.ContainsFunc(sel.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == key })
	})
}
