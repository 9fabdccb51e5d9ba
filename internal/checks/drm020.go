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
		Why:        "All devices of a pod's extended resources are in one claim, which holds 32 at most.",
		Fix:        "Split the workload, or leave it on a pool that keeps the plugin.",
		Sources:    []string{"k8s.io/api/resource/v1, AllocationResultsMaxSize, v0.37.2"},
		Operations: []string{Migrate, MigrateFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			g := ownerGroups{}
			for _, v := range in.targets() {
				for _, p := range v.PluginBackedPods(in.Resources) {
					if n := p.DevicesNeeded(in.Resource); n > resourcev1.AllocationResultsMaxSize {
						g.add(&p, fmt.Sprintf("asks for %d of %s; a claim holds %d devices at most", n, in.Resource, resourcev1.AllocationResultsMaxSize))
					}
				}
			}
			return g.findings(Finding{
				Code: "DRM020", Severity: Blocker,
				Remedy: "split the workload, or leave it on a pool that keeps the plugin",
			})
		},
	}
}
