package checks

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm042() Check {
	return Check{
		Code:       "DRM042",
		Title:      "Slices are published whose driver is gone",
		Why:        "A kubelet removes a driver's slices half a minute after it left, and not at all while the kubelet itself is down. Until then pods are bound to devices that nobody can prepare: they stay in ContainerCreating. And a pod that holds such a device cannot end, for its claim is never unprepared, so a drain waits for it in vain.",
		Fix:        "Bring the driver back to the node before anything is drained there; slices that stay without it are deleted when the node is known to hold no claim.",
		Sources:    []string{"kubernetes/kubernetes#141912, #129402", "pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go, v1.37.2"},
		Operations: []string{Prepare, Migrate, Rollback, Unprepare, MigrateInto, RollbackFrom, Verify},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods, cluster.PartSlices, cluster.PartClaims},
		Run: func(in Input) []Finding {
			serving := in.servingDriver()
			// A driver that was not recognised may be anywhere.
			known := len(in.Inventory.DriversFor(in.Driver)) > 0
			stuck, left, unready := nodeGroups{}, nodeGroups{}, nodeGroups{}
			published := in.publishing()
			names := slices.Collect(maps.Keys(published))
			mine := map[string]bool{}
			if in.Operation == Rollback || in.Operation == RollbackFrom {
				for _, v := range in.targets() {
					mine[v.Node.Name] = true
					names = append(names, v.Node.Name)
				}
			}
			for name, v := range in.viewsOf(names) {
				ready, there := serving[name]
				claims := len(v.ClaimsOf(in.Driver))
				slices := len(published[name].Slices)
				switch {
				case ready, in.leaving(v.Node):
				case there && claims > 0:
					unready.add(fmt.Sprintf("the driver's pod is not ready there, and %d claims hold devices of %s", claims, in.Driver), name)
				case there:
					// A driver that has only just started.
				case known && claims > 0 && mine[name]:
					stuck.add(fmt.Sprintf("no pod of %s runs there, and %s of its devices: their pods could not end", in.Driver, words.Plural(claims, "claim holds one", "claims hold some")), name)
				case slices > 0 && known:
					left.add(fmt.Sprintf("%s publishes %s, and no pod of it runs there", in.Driver, words.Count(slices, "slice")), name)
				case slices > 0:
					left.add(fmt.Sprintf("%s publishes %s, and no DaemonSet is known to run it: whether it is alive cannot be seen", in.Driver, words.Count(slices, "slice")), name)
				}
			}
			with := func(s Severity, remedy string) Finding { return Finding{Code: "DRM042", Severity: s, Remedy: remedy} }
			back := "see why the driver's DaemonSet has no pod there: `kubectl get pods -A -o wide --field-selector spec.nodeName=NODE`"
			return append(append(
				stuck.findings(in, with(Blocker, back)),
				unready.findings(Input{}, with(Warning, "see the log of the driver's pod on the node"))...),
				left.findings(Input{}, with(Warning, back+"; if it is gone for good and no claim holds a device there, delete its slices"))...)
		},
	}
}

// viewsOf are the views of the named nodes; those of the operation's are there already.
func (in Input) viewsOf(names []string) map[string]cluster.NodeView {
	out := map[string]cluster.NodeView{}
	var rest []string
	for _, name := range names {
		if v, ok := in.views[name]; ok {
			out[name] = v
		} else {
			rest = append(rest, name)
		}
	}
	if len(rest) > 0 {
		maps.Copy(out, in.Snapshot.Views(rest...))
	}
	return out
}

// servingDriver are the nodes with a pod of the driver, and whether one of them is
// ready.
func (in Input) servingDriver() map[string]bool {
	type key struct{ namespace, name string }
	daemonSets := map[key]bool{}
	for _, d := range in.Inventory.DriversFor(in.Driver) {
		daemonSets[key{d.DaemonSet.Namespace, d.DaemonSet.Name}] = true
	}
	out := map[string]bool{}
	for i := range in.Snapshot.Pods {
		p := &in.Snapshot.Pods[i]
		if p.Owner.Kind == "DaemonSet" && p.Node != "" && !p.Finished() && daemonSets[key{p.Namespace, p.Owner.Name}] {
			out[p.Node] = out[p.Node] || p.Ready && !p.Terminating
		}
	}
	return out
}

// leaving says that a run has taken the driver off the node and waits for its slices
// to go.
func (in Input) leaving(n *corev1.Node) bool {
	state, _ := in.Gate.StateOf(n.Labels)
	_, marked := n.Annotations[gate.StateAnnotation]
	return marked && state != gate.DRA
}
