package checks

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm101() Check {
	return Check{
		Code:       "DRM101",
		Title:      "Pods of the pool ask for what DRA cannot give by an extended resource",
		Why:        "A generated claim has a count of whole devices and nothing else. Replicas of a shared device, parts of one (HAMi), and devices for virtual machines have no counterpart, so that the pods would wait for ever.",
		Fix:        "Leave these workloads on a pool that keeps the plugin, or change them to what DRA has: one claim that several pods share, or whole devices.",
		Sources:    []string{"k8s.io/api/resource/v1, DeviceClassSpec.ExtendedResourceName", "KEP-6406", "Project-HAMi/HAMi, docs/config.md", "NVIDIA/k8s-device-plugin, README, \"Shared access to GPUs\""},
		Operations: []string{Migrate, MigrateFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims, cluster.PartClasses},
		Run: func(in Input) []Finding {
			g := ownerGroups{}
			for _, p := range in.besides() {
				_, why := in.unserved(&p)
				for _, r := range slices.Sorted(maps.Keys(why)) {
					g.add(&p, fmt.Sprintf("asks for %s: %s", r, why[r]))
				}
			}
			return g.findings(Finding{
				Code: "DRM101", Severity: Blocker,
				Remedy: "move the workload to a pool that keeps the plugin, or let it ask for whole devices of " + in.Resource,
			})
		},
	}
}
