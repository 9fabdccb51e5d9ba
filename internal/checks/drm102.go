package checks

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm102() Check {
	return Check{
		Code:       "DRM102",
		Title:      "A workload that could come to the pool could not be served there",
		Why:        "A workload that is scaled to zero, suspended or before its time has no pod that would be seen on the pool. What its template asks for is met, or not, when it is started again.",
		Fix:        "Make the DeviceClass that it needs, split a pod that asks for more than 32 devices, or pin the workload to a pool with the plugin by a node selector.",
		Sources:    []string{"k8s.io/api/resource/v1, AllocationResultsMaxSize, v0.37.2", "KEP-5004"},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom},
		Needs:      append(workloadParts(), cluster.PartPods, cluster.PartClaims, cluster.PartClasses),
		Run: func(in Input) []Finding {
			seen := map[string]bool{}
			for _, p := range in.movers() {
				seen[ownerObject(p)] = true
			}
			classless, g := map[string][]string{}, ownerGroups{}
			for _, w := range in.templates(seen) {
				classes, why := in.unserved(&w.Template)
				for _, r := range classes {
					add(classless, r, w.Ref())
				}
				for _, r := range slices.Sorted(maps.Keys(why)) {
					g.addTemplate(w, fmt.Sprintf("its template asks for %s: %s", r, why[r]))
				}
				if n := w.Template.DevicesNeeded(in.Resource); n > resourcev1.AllocationResultsMaxSize {
					g.addTemplate(w, fmt.Sprintf("its template asks for %d of %s, and a claim holds %d devices at most", n, in.Resource, resourcev1.AllocationResultsMaxSize))
				}
			}
			var out []Finding
			for _, r := range slices.Sorted(maps.Keys(classless)) {
				slices.Sort(classless[r])
				out = append(out, Finding{
					Code: "DRM102", Severity: Warning, Object: "resource/" + r,
					Message: fmt.Sprintf("the templates of %s ask for it, and no DeviceClass maps it", few(classless[r])),
					Remedy:  in.classRemedy(r),
				})
			}
			return append(out, g.findings(Finding{
				Code: "DRM102", Severity: Warning,
				Remedy: "keep it to a pool with the plugin by its node selector, or change what it asks for, before it is started again",
			})...)
		},
	}
}
