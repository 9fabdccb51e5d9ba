package checks

import (
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm016() Check {
	return Check{
		Code:       "DRM016",
		Title:      "Workloads on the pool that only DRA can serve",
		Why:        "A plugin serves requests for its own resources alone. A pod with a claim of its own, or one that asks for a class by its implicit name, cannot run on the pool once that is back on the plugin.",
		Fix:        "Move the workload to a pool that stays on DRA, or end it.",
		Sources:    []string{"KEP-5004, implicit extended resource name"},
		Operations: []string{Rollback, RollbackFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims, cluster.PartSlices},
		Run: func(in Input) []Finding {
			g := ownerGroups{}
			for _, v := range in.targets() {
				claims := map[string]cluster.ClaimUse{}
				for _, c := range v.ClaimsOf(in.Driver) {
					claims[c.Ref()] = c
				}
				for i := range v.Pods {
					if why := in.onlyDRA(&v.Pods[i], claims); why != "" {
						g.add(&v.Pods[i], why+", which the device plugin cannot serve")
					}
				}
			}
			return g.findings(Finding{
				Code: "DRM016", Severity: Blocker,
				Remedy: "move the workload to another pool that stays on DRA, or end it",
			})
		},
	}
}

// onlyDRA says why the pod cannot be served by the plugin; empty if it can.
func (in Input) onlyDRA(p *cluster.Pod, claims map[string]cluster.ClaimUse) string {
	if p.Finished() {
		return ""
	}
	for _, name := range p.Claims {
		if c, ok := claims[p.Namespace+"/"+name]; ok {
			return fmt.Sprintf("holds %s by its claim %s", words.Count(len(c.Devices), "device"), claimed(p, name))
		}
	}
	if p.Bridge == nil {
		return ""
	}
	if _, ok := claims[p.Namespace+"/"+p.Bridge.Claim]; !ok {
		return ""
	}
	for _, r := range p.Requests {
		if !slices.Contains(in.Resources, string(r.Resource)) && cluster.BridgeBacked(p, string(r.Resource), in.Snapshot.Claims) {
			return fmt.Sprintf("holds devices by asking for %s", r.Resource)
		}
	}
	return ""
}

// claimed is what made a claim where a template makes one for each pod, or its name.
func claimed(p *cluster.Pod, name string) string {
	if len(p.ClaimTemplates) > 0 {
		return "of ResourceClaimTemplate " + few(p.ClaimTemplates)
	}
	return name
}
