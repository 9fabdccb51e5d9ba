package checks

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm133() Check {
	return Check{
		Code:       "DRM133",
		Title:      "A LimitRange does not bound claims",
		Why:        "A LimitRange goes on to bound what a container asks for of the extended resource, whichever mechanism serves it. It knows nothing of ResourceClaims: who makes one of the same class may have more devices than the LimitRange allows.",
		Fix:        "Bound claims by a ResourceQuota or an admission policy.",
		Sources:    []string{"plugin/pkg/admission/limitranger/admission.go, v1.37.2"},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom},
		Needs:      []string{cluster.PartClaims, cluster.PartClasses, cluster.PartLimitRanges},
		Run: func(in Input) []Finding {
			claimed := in.claimedDevices()
			var out []Finding
			for i := range in.Snapshot.LimitRanges {
				l := &in.Snapshot.LimitRanges[i]
				n := claimed[l.Namespace]
				bounds := slices.ContainsFunc(l.Spec.Limits, func(item corev1.LimitRangeItem) bool {
					_, yes := item.Max[corev1.ResourceName(in.Resource)]
					return yes
				})
				if n == 0 || !bounds {
					continue
				}
				out = append(out, Finding{
					Code: "DRM133", Severity: Info, Object: "limitrange/" + l.Namespace + "/" + l.Name,
					Message: fmt.Sprintf("has a maximum of %s, and claims in its namespace ask for %d devices of the class that maps the name, which it does not bound", in.Resource, n),
					Remedy:  fmt.Sprintf("bound them by a ResourceQuota with %s%s", in.className(), quotaClassDevices),
				})
			}
			return out
		},
	}
}
