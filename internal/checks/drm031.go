package checks

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm031() Check {
	return Check{
		Code:        "DRM031",
		Title:       "The API server does not serve resource.k8s.io/v1",
		Why:         "DeviceClasses, slices and claims are read and made as resource.k8s.io/v1, which servers have on by default since Kubernetes 1.34. The beta versions are off by default, and they go: v1beta1 in 1.38, v1beta2 in 1.39.",
		Fix:         "Upgrade the control plane, or take resource.k8s.io/v1=false out of the API server's --runtime-config.",
		Sources:     []string{"KEP-4381", "pkg/controlplane/instance.go, v1.37.2"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate, MigrateInto, Verify},
		Run: func(in Input) []Finding {
			f := Finding{Code: "DRM031", Object: "server", Remedy: "see `kubectl api-versions | grep resource.k8s.io`"}
			v1 := resourcev1.SchemeGroupVersion.Version
			served := in.Snapshot.API.ResourceVersions
			_, unread := in.Snapshot.IsUnknown(cluster.PartResourceAPI)
			switch {
			case slices.Contains(served, v1):
				return nil
			case !unread:
				f.Severity = Blocker
				f.Message = "it serves no version of resource.k8s.io at all: DRA is off"
				if len(served) > 0 {
					f.Message = fmt.Sprintf("it serves resource.k8s.io as %s and not as v1", few(served))
				}
				f.Remedy = "serve resource.k8s.io/v1: it is on by default since Kubernetes 1.34, unless --runtime-config of the API server switches it off"
			case in.Snapshot.Source == nil:
				// Slices and classes are read as v1: one that is not served is among the
				// parts that could not be read, and DRM011 stops the run.
				return nil
			default:
				f.Severity = Unknown
				f.Remedy = "add to --from the output of `" + collect(cluster.PartResourceAPI, in.Namespace) + "`"
				f.Message = "the files do not tell which versions of resource.k8s.io are served; v1 is since Kubernetes 1.34, unless it was switched off"
			}
			return []Finding{f}
		},
	}
}
