package checks

import (
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm005() Check {
	return Check{
		Code:        "DRM005",
		Title:       "Several DeviceClasses carry the extended resource name",
		Why:         "The newest class wins, and of two with one creation time the lower name. But up to Kubernetes 1.37 the scheduler loses the mapping altogether when any class with the name is removed or renamed, also the one that is not in force, and quota with it. Charts of several vendors bring such a class: NVIDIA's driver since 25.12, HAMi's, and the tool's own.",
		Fix:         "Leave one class with the name, and have its owner keep it. When the mapping was lost, clear the field of the class that stays and set it again: that also wakes the pods that wait.",
		Sources:     []string{"kubernetes/kubernetes#141103, #141110 (fixed in 1.38), #135037", "ROCm/k8s-gpu-dra-driver#44", "k8s.io/dynamic-resource-allocation, deviceclass/extendedresourcecache"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate, Unprepare, MigrateInto, Verify},
		Mapping:     true,
		Needs:       []string{cluster.PartClasses},
		Run: func(in Input) []Finding {
			winner, others := in.Snapshot.ClassFor(in.Resource)
			var out []Finding
			for i := range others {
				f := Finding{
					Code:     "DRM005",
					Severity: Blocker,
					Object:   "deviceclass/" + others[i].Name,
					Message: fmt.Sprintf("it carries extendedResourceName %s, as deviceclass/%s does, which is the one in force: %s (this one: %s; that one: %s)",
						in.Resource, winner.Name, wins(winner, &others[i]), origin(&others[i]), origin(winner)),
					Remedy: fmt.Sprintf("leave one class with the name; up to Kubernetes 1.37 the scheduler forgets the mapping when one goes, until the field of the other, deviceclass/%s, is cleared and set again",
						winner.Name),
				}
				if in.Snapshot.KeepsMapping() {
					f.Severity = Warning
					f.Remedy = fmt.Sprintf("leave one class with the name: should deviceclass/%s go, this one takes over at once", winner.Name)
				}
				out = append(out, f)
			}
			return out
		},
	}
}

// wins says why a class is in force before another.
func wins(winner, other *resourcev1.DeviceClass) string {
	if winner.CreationTimestamp.Time.Equal(other.CreationTimestamp.Time) {
		return "both were made in the same second, and its name sorts first"
	}
	return "it was made later"
}

// origin says when a class was made, and by whom as far as its marks tell.
func origin(c *resourcev1.DeviceClass) string {
	made := "made at an unknown time"
	if !c.CreationTimestamp.IsZero() {
		made = "made " + c.CreationTimestamp.UTC().Format(time.RFC3339)
	}
	switch owner := gate.OwnerOfObject(c.ObjectMeta); {
	case owner.Owned():
		return fmt.Sprintf("%s, owned by %s by its %s", made, owner, owner.Evidence)
	case c.Labels[gate.ManagedByLabel] == gate.ManagedBy:
		return made + ", by this tool"
	default:
		return made + ", without a mark of an owner"
	}
}
