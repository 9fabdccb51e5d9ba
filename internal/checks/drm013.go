package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm013() Check {
	return Check{
		Code:        "DRM013",
		Title:       "Placing the running driver would take it from nodes where it serves",
		Why:         "A driver that runs already may serve pods on nodes that still have the plugin, as the NVIDIA driver does with ComputeDomains. Kept to switched nodes it would leave these pods without it, and they could not even end: a claim is not unprepared without its driver.",
		Fix:         "End the workloads with these claims first, or run the part of the driver that serves them from a DaemonSet of its own.",
		Sources:     []string{"pkg/kubelet/cm/dra/manager.go, v1.37.2", "kubernetes/kubernetes#129402"},
		Unskippable: true,
		Operations:  []string{Prepare},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods, cluster.PartSlices, cluster.PartClaims},
		Run: func(in Input) []Finding {
			var out []Finding
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				if gate.Placed(d.DaemonSet) {
					continue
				}
				var idle, busy, claims []string
				views := in.Snapshot.Views(d.Nodes...)
				for _, name := range d.Nodes {
					v, ok := views[name]
					if !ok || v.Node.Labels[gate.AllocationLabel] == gate.ValueDRA {
						continue
					}
					uses := v.ClaimsOf(d.DriverNames...)
					if len(uses) == 0 {
						idle = append(idle, name)
						continue
					}
					busy = append(busy, name)
					for i := range uses {
						claims = append(claims, uses[i].Ref())
					}
				}
				base := Finding{Code: "DRM013", Object: daemonSetObject(d.DaemonSet)}
				if len(busy) > 0 {
					f := base
					f.Severity = Blocker
					f.Message = fmt.Sprintf("kept to switched nodes it would leave %s, where claims %s hold devices of it", nodeList(busy), few(claims))
					f.Remedy = "end the workloads with these claims first, or run the part of the driver that serves them from a DaemonSet of its own"
					out = append(out, f)
				}
				if len(idle) > 0 {
					f := base
					f.Severity = Warning
					f.Message = fmt.Sprintf("kept to switched nodes it leaves %s; no claim holds a device of it there", nodeList(idle))
					f.Remedy = "see that nothing which is to come wants it there before the pool has moved; such a workload needs its driver in a DaemonSet of its own"
					out = append(out, f)
				}
			}
			return out
		},
	}
}
