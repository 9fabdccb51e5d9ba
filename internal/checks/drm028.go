package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm028() Check {
	return Check{
		Code:        "DRM028",
		Title:       "The name of the DeviceClass to be created is taken",
		Why:         "A live DeviceClass is never edited, for pods may be served by it. One that has the name of the class which the run would make, and does not carry the resource, would stop the run when its first node is closed already.",
		Fix:         "Choose another name for the class, or delete the class if nothing uses it.",
		Sources:     []string{"KEP-5004, DeviceClass.spec.extendedResourceName", "ROCm/k8s-gpu-dra-driver#44"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate, MigrateInto},
		Needs:       []string{cluster.PartClasses},
		Run: func(in Input) []Finding {
			for i := range in.Snapshot.Classes {
				c := &in.Snapshot.Classes[i]
				carries := c.Spec.ExtendedResourceName != nil && *c.Spec.ExtendedResourceName == in.Resource
				if c.Name == in.NewClass && !carries {
					return []Finding{{
						Code:     "DRM028",
						Severity: Blocker,
						Object:   "deviceclass/" + c.Name,
						Message:  fmt.Sprintf("is there (%s) and does not carry %s; the run would create a class of this name, and edits none that is live", origin(c), in.Resource),
						Remedy:   "choose another name (`class.name` in the file of --config, or in the driver's manifests), or delete the class if nothing uses it",
					}}
				}
			}
			return nil
		},
	}
}
