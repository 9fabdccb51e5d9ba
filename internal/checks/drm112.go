package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm112() Check {
	return Check{
		Code:       "DRM112",
		Title:      "A pod asks for several replicas of shared devices",
		Why:        "With time-slicing or MPS two containers that ask for one each may be given replicas of one and the same GPU. Requests add up for the pod: without sharing, by the plugin or by DRA, it needs as many whole GPUs.",
		Fix:        "Let one container of the pod ask, or let the pod use one ResourceClaim in all its containers once the pool is on DRA.",
		Sources:    []string{"NVIDIA/k8s-device-plugin#1690", "NVIDIA/k8s-device-plugin, README, \"Shared access to GPUs\""},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			g := ownerGroups{}
			for _, v := range in.targets() {
				if sharing(v, in.Resource) == "" {
					continue
				}
				for _, p := range v.PluginBackedPods(in.Resources) {
					for _, r := range in.Resources {
						if n := p.DevicesNeeded(r); n > 1 {
							g.add(&p, fmt.Sprintf("asks for %d of %s in sum, which are replicas of fewer GPUs now: without sharing it needs %d whole ones", n, r, n))
						}
					}
				}
			}
			return g.findings(Finding{Code: "DRM112", Severity: Warning, Remedy: "before sharing is switched off let it ask for as many whole GPUs as it uses"})
		},
	}
}
