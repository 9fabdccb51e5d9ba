package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm103() Check {
	return Check{
		Code:       "DRM103",
		Title:      "A workload's template combines a ResourceClaim with the extended resource",
		Why:        "It is what DRM006 says of pods, before there are any: a template with a claim, or a claim template, and a request for the resource makes pods that cannot be bound to nodes with the plugin once a class maps the name, on any pool.",
		Fix:        "Let the template get all its devices from claims, or keep the workload to pools that are on DRA.",
		Sources:    []string{"pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, patchPodExtendedResourceClaimStatus, v1.35 to v1.38"},
		Advises:    true,
		Operations: []string{Prepare, Migrate, MigrateFrom, Verify},
		Needs:      append(workloadParts(), cluster.PartPods),
		Run: func(in Input) []Finding {
			seen := map[string]bool{} // DRM006 reports them by their pods
			for i := range in.Snapshot.Pods {
				if p := &in.Snapshot.Pods[i]; !p.Finished() && len(p.Claims) > 0 && p.Asks(in.Resource) {
					seen[ownerObject(p)] = true
				}
			}
			g := ownerGroups{}
			for i := range in.Snapshot.Workloads {
				w := &in.Snapshot.Workloads[i]
				if w.Finished || seen[w.Ref()] || w.Owner.Kind == cluster.KindCronJob || len(w.Template.Claims) == 0 || !w.Template.Asks(in.Resource) {
					continue
				}
				by := "a ResourceClaim"
				if t := w.Template.ClaimTemplates; len(t) > 0 {
					by = "ResourceClaimTemplate " + few(t)
				}
				g.addTemplate(w, fmt.Sprintf("its template uses %s and asks for %s: while a class maps that name its pods cannot be bound to nodes that have the plugin", by, in.Resource))
			}
			return g.findings(Finding{
				Code: "DRM103", Severity: Warning,
				Remedy: "change the template to get its devices from claims alone, or add a node selector for pools on DRA: {" + cluster.AllocationLabel + ": dra}",
			})
		},
	}
}
