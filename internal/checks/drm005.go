package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm005() Check {
	return Check{
		Code:        "DRM005",
		Title:       "Several DeviceClasses carry the extended resource name",
		Why:         "The newest class wins, and of two with one creation time the lower name. But up to Kubernetes 1.37 the scheduler loses the mapping altogether when any class with the name is removed or renamed, also the one that is not in force.",
		Fix:         "Leave one class with the name. When the mapping was lost, clear the field of the class that stays and set it again: that also wakes the pods that wait.",
		Sources:     []string{"kubernetes/kubernetes#141103, #141110 (fixed in 1.38)", "k8s.io/dynamic-resource-allocation, deviceclass/extendedresourcecache"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate, Unprepare},
		Mapping:     true,
		Needs:       []string{cluster.PartClasses},
		Run: func(in Input) []Finding {
			winner, others := in.Snapshot.ClassFor(in.Resource)
			var out []Finding
			for i := range others {
				out = append(out, Finding{
					Code:     "DRM005",
					Severity: Blocker,
					Object:   "deviceclass/" + others[i].Name,
					Message: fmt.Sprintf("it carries extendedResourceName %s, as deviceclass/%s does, which is the one in force",
						in.Resource, winner.Name),
					Remedy: fmt.Sprintf("leave one class with the name; up to Kubernetes 1.37 the scheduler forgets the mapping when one goes, until the field of the other, deviceclass/%s, is cleared and set again",
						winner.Name),
				})
			}
			return out
		},
	}
}
