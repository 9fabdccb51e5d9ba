package checks

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm045() Check {
	return Check{
		Code:       "DRM045",
		Title:      "The name of a DeviceClass does not fit an extended resource",
		Why:        "Every class can be asked for as deviceclass.resource.kubernetes.io/NAME, if NAME is a valid name of a resource: at most 63 characters. The name of a class may have 253. The resource that a class maps by its field is not concerned, but nobody can ask for the class by its own name, as one does to prove that it works.",
		Fix:        "Give the class a shorter name when it is made; a live class is not renamed.",
		Sources:    []string{"KEP-5004, implicit extended resource name", "k8s.io/dynamic-resource-allocation, deviceclass/extendedresourcecache", "NVIDIA/k8s-launch-kit#73"},
		Operations: []string{Prepare, Migrate, MigrateInto},
		Advises:    true,
		Needs:      []string{cluster.PartClasses},
		Run: func(in Input) []Finding {
			var names []string
			if in.NewClass != "" {
				names = append(names, in.NewClass)
			}
			if winner, _ := in.Snapshot.ClassFor(in.Resource); winner != nil {
				names = append(names, winner.Name)
			}
			var out []Finding
			for _, name := range names {
				if problems := validation.IsQualifiedName(cluster.ImplicitResourcePrefix + name); len(problems) > 0 {
					out = append(out, Finding{
						Code: "DRM045", Severity: Info, Object: "deviceclass/" + name,
						Message: fmt.Sprintf("cannot be asked for as %s%s: %s", cluster.ImplicitResourcePrefix, name, strings.Join(problems, "; ")),
						Remedy:  "nothing, if all pods ask for " + in.Resource + "; a class that is yet to be made can be named by `class.name` in the file of --config",
					})
				}
			}
			return out
		},
	}
}
