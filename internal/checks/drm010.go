package checks

import (
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm010() Check {
	return Check{
		Code:        "DRM010",
		Title:       "A node advertises devices by both mechanisms",
		Why:         "The scheduler counts by the plugin for pods that ask for the extended resource and allocates from the slices for explicit claims, so one GPU is given to two pods. Nothing in Kubernetes checks for it.",
		Fix:         "Cordon the node, see which of the two belongs there, and take the other away.",
		Sources:     []string{"KEP-5004, \"Non-Goals\"", "pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA, v1.37.2"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate, Rollback, Unprepare, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto, Verify},
		Needs:       []string{cluster.PartSlices},
		Run: func(in Input) []Finding {
			mine := map[string]bool{}
			for _, n := range in.nodes() {
				mine[n] = true
			}
			strays := in.strays()
			byStray := map[string]bool{}
			open, closed, mended, elsewhere := nodeGroups{}, nodeGroups{}, nodeGroups{}, nodeGroups{}
			ghosts := map[bool]nodeGroups{false: {}, true: {}} // by whether they are closed
			for name, v := range in.publishing() {
				devices, _ := cluster.DevicesOf(v.Slices, in.Driver)
				for _, r := range in.Resources {
					n, _ := v.Allocatable(r)
					if n == 0 || len(devices) == 0 {
						continue
					}
					group := open
					switch {
					case !mine[name]:
						group = elsewhere
					case in.ghost(v, r) && strays[name] == "":
						ghosts[slices.ContainsFunc(v.Node.Spec.Taints, gate.IsSwitchingTaint)].add(fmt.Sprintf("%d of %s are allocatable, and no plugin is there that serves them, while %s publishes %s", n, r, in.Driver, words.Count(len(devices), "device")), name)
						continue
					case slices.ContainsFunc(v.Node.Spec.Taints, gate.IsSwitchingTaint):
						group = closed
					case in.mends(v):
						group = mended
					}
					if strays[name] != "" {
						byStray[name] = true
					}
					group.add(fmt.Sprintf("%d of %s are allocatable by the plugin while %s publishes %s", n, r, in.Driver, words.Count(len(devices), "device"))+strays[name], name)
				}
			}
			base := Finding{Code: "DRM010", Remedy: "cordon it, and see which of the two belongs there: `kubectl get resourceslices` and the pods of both DaemonSets on the node"}
			if len(byStray) > 0 {
				base.Remedy = "cordon it; if that pod is what advertises them, delete it, and whatever starts it; else see which of the two belongs there: `kubectl get resourceslices`"
			}
			with := func(s Severity) Finding { f := base; f.Severity = s; return f }
			mend := Finding{Code: "DRM010", Severity: Warning, Remedy: "this run ends it; cordon the node until then, and run apply or rollback on its pool"}
			ghost := Finding{Code: "DRM010", Severity: Blocker, Remedy: "its kubelet says once that a plugin is gone for good, and that was lost: `kubectl patch node NODE --subresource=status --type=merge -p " + words.Quoted(`{"status":{"capacity":{"`+in.Resource+`":"0"}}}`) + "` says it"}
			shut := ghost
			shut.Severity = Warning
			return slices.Concat(ghosts[false].findings(in, ghost), ghosts[true].findings(in, shut), open.findings(in, with(Blocker)), closed.findings(in, with(Warning)), mended.findings(in, mend), elsewhere.findings(Input{}, with(Warning)))
		},
	}
}

// ghost says that a switched node offers the resource without a pod that serves it: the
// kubelet takes it from the node object, when its update that the plugin is gone did not
// arrive (pkg/kubelet/nodestatus/setters.go, MachineInfo, v1.37.2).
func (in Input) ghost(v cluster.NodeView, resource string) bool {
	if _, unread := in.Snapshot.IsUnknown(cluster.PartPods); unread || resource != in.Resource {
		return false
	}
	if state, known := in.Gate.StateOf(v.Node.Labels); !known || state != gate.DRA {
		return false
	}
	return !slices.ContainsFunc(in.Inventory.PluginsFor(resource), func(p gate.PluginDaemonSet) bool { return slices.Contains(p.Nodes, v.Node.Name) })
}

// mends says that the run ends what it finds: somebody has changed a node's gate labels
// since a run had left them, or the plugin's DaemonSet since prepare.
func (in Input) mends(v cluster.NodeView) bool {
	state, err := cluster.ParseNodeState(v.Node)
	own, known := gate.Switched(v.Node.Labels)
	if err != nil || state == nil || !known || own == gate.Plugin {
		return false
	}
	switch in.Operation {
	case Migrate, Rollback:
		_, fits := in.Gate.StateOf(v.Node.Labels)
		return !fits && in.Gate.Busy(v.Node.Labels) == ""
	case Prepare:
		// The plugin's DaemonSet has lost what kept it off switched nodes.
		return slices.ContainsFunc(in.Inventory.PluginsFor(in.Resource), func(p gate.PluginDaemonSet) bool {
			return !p.Gate.Vendor && !gate.Excluded(p.DaemonSet) && slices.Contains(p.Nodes, v.Node.Name)
		})
	}
	return false
}

// strays are the pods of no DaemonSet, by node, that may be a plugin.
func (in Input) strays() map[string]string {
	byNode := map[string][]cluster.Pod{}
	for i := range in.Snapshot.Pods {
		if p := &in.Snapshot.Pods[i]; p.Node != "" && len(p.HostPaths) > 0 && p.Owner.Kind != "DaemonSet" {
			byNode[p.Node] = append(byNode[p.Node], *p)
		}
	}
	out := map[string]string{}
	for node, pods := range byNode {
		if found := strayPlugins(pods); len(found) > 0 {
			out[node] = "; " + few(found) + ", of no DaemonSet, mounts the folder of device plugins"
		}
	}
	return out
}

// publishing are the nodes of the cluster for which the driver publishes slices, with
// these slices alone: the check looks beyond the pool.
func (in Input) publishing() map[string]cluster.NodeView {
	out := map[string]cluster.NodeView{}
	for i := range in.Snapshot.Slices {
		s := in.Snapshot.Slices[i]
		if s.Spec.Driver == in.Driver && s.Spec.NodeName != nil {
			v := out[*s.Spec.NodeName]
			v.Slices = append(v.Slices, s)
			out[*s.Spec.NodeName] = v
		}
	}
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		if v, ok := out[n.Name]; ok {
			v.Node = n
			out[n.Name] = v
		}
	}
	for name, v := range out {
		if v.Node == nil {
			delete(out, name) // the slices of a node that is gone
		}
	}
	return out
}
