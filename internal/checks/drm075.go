package checks

import (
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm075() Check {
	return Check{
		Code:       "DRM075",
		Title:      "The DRA driver's pod is older than what it reads from the node",
		Why:        "The NVIDIA DRA driver reads the kernel driver's libraries and the toolkit's files when it starts. If the operator replaces either afterwards, the driver goes on with what it knew: containers come up with missing or empty device edits.",
		Fix:        "Delete the DRA driver's pod on the node; its DaemonSet makes it again, and claims stay.",
		Sources:    []string{"kubernetes-sigs/dra-driver-nvidia-gpu#1144"},
		Operations: []string{Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Advises:    true,
		Run: func(in Input) []Finding {
			if !in.nvidia() {
				return nil
			}
			below := in.daemonSets(kernelDriver)
			below = append(below, in.daemonSets(toolkit)...)
			newest := map[string]*cluster.Pod{} // by node
			for _, pods := range in.daemonPods(below...) {
				for _, p := range pods {
					if at := newest[p.Node]; at == nil || p.Created.After(at.Created) {
						newest[p.Node] = p
					}
				}
			}
			mine := map[string]bool{}
			for _, v := range in.seen() {
				mine[v.Node.Name] = true
			}
			var out []Finding
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				by := map[string][]string{} // what is newer → nodes
				var first *cluster.Pod
				for _, p := range in.daemonPods(d.DaemonSet)[d.DaemonSet] {
					n := newest[p.Node]
					if n == nil || !mine[p.Node] || p.Created.IsZero() || !n.Created.After(p.Created) {
						continue
					}
					if first == nil {
						first = p
					}
					by[n.Owner.Name] = append(by[n.Owner.Name], p.Node)
				}
				if first == nil {
					continue
				}
				for _, newer := range sortedKeys(by) {
					slices.Sort(by[newer])
					out = append(out, Finding{
						Code: "DRM075", Severity: Warning, Object: daemonSetObject(d.DaemonSet),
						Message: "on " + nodeList(by[newer]) + " its pod is older than that of daemonset " + newer + ", whose files it reads when it starts",
						Remedy:  "`kubectl -n " + first.Namespace + " delete pod " + first.Name + "`, and so on each of these nodes",
					})
				}
			}
			return out
		},
	}
}
