package checks

import (
	"encoding/json"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm046() Check {
	return Check{
		Code:       "DRM046",
		Title:      "The DeviceClass of the resource configures its devices",
		Why:        "What a class has in spec.config goes into every claim that is made for a pod which asks for the resource, and no pod can say otherwise. A driver prepares each device by it: sharing, for one, starts a daemon, or fails where the driver's own feature is off, and then no such pod starts.",
		Fix:        "Map the resource by a class without spec.config, and keep the configured one for claims that name it.",
		Sources:    []string{"k8s.io/api/resource/v1, DeviceClassSpec.Config", "kubernetes-sigs/dra-driver-nvidia-gpu, api/nvidia.com/resource/v1beta1, GpuConfig"},
		Operations: []string{Prepare, Migrate, MigrateInto},
		Advises:    true,
		Needs:      []string{cluster.PartClasses},
		Run: func(in Input) []Finding {
			class, _ := in.Snapshot.ClassFor(in.Resource)
			if class == nil {
				class = in.NewClassObject
			}
			if class == nil {
				return nil
			}
			f := Finding{Code: "DRM046", Severity: Warning, Object: "deviceclass/" + class.Name}
			var ours, others []string
			for _, c := range class.Spec.Config {
				switch what := configures(c); {
				case what == "":
				case c.Opaque.Driver == in.Driver:
					ours = append(ours, what)
				default:
					others = append(others, what)
				}
			}
			var out []Finding
			if len(ours) > 0 {
				f.Message = fmt.Sprintf("gives every pod that asks for %s the configuration %s", in.Resource, few(ours))
				f.Remedy = "see that it is meant for all of them: `kubectl get deviceclass " + class.Name + " -o yaml`; the canary of each node gets it too"
				out = append(out, f)
			}
			if len(others) > 0 {
				f.Severity = Info
				f.Message = fmt.Sprintf("carries the configuration %s, which %s does not heed", few(slices.Compact(others)), in.Driver)
				f.Remedy = "nothing has to be done; see whether the class is meant for " + in.Driver
				out = append(out, f)
			}
			return out
		},
	}
}

// configures names what one configuration of a class holds: its driver, and the kind
// of its parameters if they tell. Empty for a kind of configuration that is not known.
func configures(c resourcev1.DeviceClassConfiguration) string {
	if c.Opaque == nil {
		return ""
	}
	var kind struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(c.Opaque.Parameters.Raw, &kind) != nil || kind.Kind == "" {
		return "for " + c.Opaque.Driver
	}
	return fmt.Sprintf("%s for %s", kind.Kind, c.Opaque.Driver)
}
