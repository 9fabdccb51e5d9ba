package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// drm005: the newest class wins, but up to Kubernetes 1.37 the scheduler loses the
// mapping altogether when any class with the name is removed or renamed
// (kubernetes/kubernetes#141103, fixed in 1.38).
func drm005() Check {
	return Check{
		Code:       "DRM005",
		Title:      "Several DeviceClasses carry the extended resource name",
		Operations: []string{Prepare, Migrate, Unprepare},
		Mapping:    true,
		Needs:      []string{cluster.PartClasses},
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
