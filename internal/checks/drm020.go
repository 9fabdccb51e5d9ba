package checks

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm020() Check {
	return Check{
		Code:       "DRM020",
		Title:      "A pod asks for more devices than one claim can hold",
		Why:        "All devices of a pod's extended resources are in one claim, which holds 32 at most. While a class carries the name, the scheduler fails on a pod that asks for more as soon as it looks at a node that DRA could serve, and the pod is bound to no node at all, of no pool, unless it is pinned to nodes with the plugin. Pods that run are not touched.",
		Fix:        "Split the workload, or pin it to a pool that keeps the plugin by a node selector.",
		Sources:    []string{"k8s.io/api/resource/v1, AllocationResultsMaxSize, v0.37.2", "pkg/scheduler/framework/plugins/dynamicresources, v1.37.2; docs/truth.md, K1.5c"},
		Operations: []string{Prepare, Migrate, MigrateFrom},
		Mapping:    true,
		Needs:      []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			here, elsewhere := ownerGroups{}, ownerGroups{}
			mine := map[string]bool{}
			for _, v := range in.targets() {
				mine[v.Node.Name] = in.Operation != Prepare
			}
			for i := range in.Snapshot.Pods {
				p := &in.Snapshot.Pods[i]
				n := p.DevicesNeeded(in.Resource)
				if p.Finished() || n <= resourcev1.AllocationResultsMaxSize || cluster.BridgeBacked(p, in.Resource, in.Snapshot.Claims) {
					continue
				}
				says := fmt.Sprintf("asks for %d of %s; a claim holds %d devices at most", n, in.Resource, resourcev1.AllocationResultsMaxSize)
				switch {
				case mine[p.Node]:
					here.add(p, says)
				case !pinned(p):
					elsewhere.add(p, says+": once a DeviceClass maps that name, such a pod is bound to no node of any pool, unless it is pinned to nodes with the plugin")
				}
			}
			f := Finding{
				Code: "DRM020", Severity: Blocker,
				Remedy: "split the workload, or pin it to a pool that keeps the plugin, by a node selector",
			}
			out := here.findings(f)
			if winner, _ := in.Snapshot.ClassFor(in.Resource); winner != nil || in.Operation == Prepare {
				// It is so already, or prepare does not make it so.
				f.Severity = Warning
			}
			return append(out, elsewhere.findings(f)...)
		},
	}
}

// pinned says that a pod asks for nodes by their labels. Whether these all have the
// plugin is not looked at.
func pinned(p *cluster.Pod) bool {
	return p.Placement != nil && (len(p.Placement.NodeSelector) > 0 || p.Placement.Required != nil)
}
