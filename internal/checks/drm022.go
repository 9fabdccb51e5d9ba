package checks

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm022() Check {
	return Check{
		Code:        "DRM022",
		Title:       "The driver would not come to a node",
		Why:         "The driver has to come to every node that is switched. The usual reasons why it does not are a taint of the pool that the driver's chart does not tolerate, and node labels that its affinity wants and that nothing sets on the pool.",
		Fix:         "Make the driver's DaemonSet fit the node: its node selector, affinity and tolerations.",
		Sources:     []string{"kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, values.yaml", "pkg/controller/daemon/daemon_controller.go, v1.37.2"},
		Unskippable: true,
		Operations:  []string{Migrate},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var drivers []*appsv1.DaemonSet
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				drivers = append(drivers, d.DaemonSet)
			}
			if len(drivers) == 0 || !in.anyDevices() {
				return nil // DRM015 and DRM057 say so
			}
			nodes := in.stranded(drivers, gate.DRA, "")
			var out []Finding
			for _, evidence := range slices.Sorted(maps.Keys(nodes)) {
				// Nodes with one reason may lack different labels.
				byRemedy := map[string]nodeGroups{}
				for _, name := range nodes[evidence] {
					remedy := in.landing(drivers, in.views[name].Node)
					if byRemedy[remedy] == nil {
						byRemedy[remedy] = nodeGroups{}
					}
					byRemedy[remedy].add(evidence, name)
				}
				for _, remedy := range slices.Sorted(maps.Keys(byRemedy)) {
					out = append(out, byRemedy[remedy].findings(in, Finding{Code: "DRM022", Severity: Blocker, Remedy: remedy})...)
				}
			}
			return out
		},
	}
}

// landing says what lets a driver's pod onto a node of which the labels are wanting, or
// in general if it is something else.
func (in Input) landing(drivers []*appsv1.DaemonSet, node *corev1.Node) string {
	var wants []string
	placed := true
	labelled := node.DeepCopy()
	if labelled.Labels == nil {
		labelled.Labels = map[string]string{}
	}
	for _, ds := range drivers {
		if w := gate.Wants(ds, in.Gate.With(node, gate.DRA)); len(w) > 0 {
			wants = append(wants, daemonSetObject(ds)+" wants "+few(w))
			placed = placed && gate.Placed(ds)
			for _, pair := range w {
				if key, value, ok := strings.Cut(pair, "="); ok {
					labelled.Labels[key] = value
				}
			}
		}
	}
	const fit = "make the driver's DaemonSet fit the node: its node selector, affinity and tolerations against the node's labels and taints"
	if len(wants) == 0 {
		return fit
	}
	says := strings.Join(wants, "; ")
	label := "label the nodes so, in the configuration of their node group as well, or " + fit
	for _, p := range in.plugins() {
		now, _ := gate.Lands(p.DaemonSet, node)
		if then, _ := gate.Lands(p.DaemonSet, labelled); now && !then {
			return says + ": do not label the nodes so, which takes " + daemonSetObject(p.DaemonSet) + " off them under their pods; take that out of the driver's node selector or affinity, for " + gate.AllocationLabel + " says where it runs"
		}
	}
	if !placed {
		return says + ": run `dramigrate prepare` first, for until then the label brings the driver at once, beside the plugin; then " + label
	}
	return says + ": " + label
}
