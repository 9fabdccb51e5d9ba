package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm048() Check {
	return Check{
		Code:       "DRM048",
		Title:      "The DeviceClass of the resource belongs to somebody else",
		Why:        "The tool adopts a class that carries the name, whoever made it. Its owner may take it away: `helm uninstall` of a driver's chart, or an upgrade to a version whose class has no extendedResourceName, ends the mapping for every pool. Pods that run go on; new ones on switched nodes wait.",
		Fix:        "See that the owner keeps the class, and its extendedResourceName, as long as a pool is on DRA.",
		Sources:    []string{"ROCm/k8s-gpu-dra-driver#44", "kubernetes-sigs/dra-driver-cpu#83", "kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm"},
		Operations: []string{Prepare, Migrate, MigrateInto, Verify},
		Advises:    true,
		Needs:      []string{cluster.PartClasses},
		Run: func(in Input) []Finding {
			class, _ := in.Snapshot.ClassFor(in.Resource)
			if class == nil {
				return nil
			}
			owner := gate.OwnerOfObject(class.ObjectMeta)
			if !owner.Owned() {
				return nil
			}
			return []Finding{{
				Code: "DRM048", Severity: Info, Object: "deviceclass/" + class.Name,
				Message: fmt.Sprintf("it maps %s and belongs to %s (%s): if that removes it, new pods on every switched node wait", in.Resource, owner, owner.Evidence),
				Remedy:  "keep it as long as a pool is on DRA; `dramigrate verify` says when the mapping is gone",
			}}
		},
	}
}
