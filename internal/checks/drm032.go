package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// lockedMinor is the minor version since which DRAExtendedResource cannot be switched
// off (pkg/features/kube_features.go, v1.37.2).
const lockedMinor = 37

func drm032() Check {
	return Check{
		Code:        "DRM032",
		Title:       "The feature DRAExtendedResource is off, or not seen to be on",
		Why:         "With the gate off the API server drops DeviceClass.spec.extendedResourceName, and the scheduler serves no extended resource by DRA. In 1.36 it is on by default and can be switched off; since 1.37 it is locked on. Scheduler, controller manager and kubelets have the gate too, and theirs cannot be seen from the API: the canary pod on the first node is what tries them.",
		Fix:         "Take DRAExtendedResource=false out of the --feature-gates of API server, scheduler, controller manager and kubelets.",
		Sources:     []string{"KEP-5004", "pkg/features/kube_features.go, v1.36.3 and v1.37.2", "pkg/registry/resource/deviceclass/strategy.go, v1.37.2"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate, MigrateInto, Verify},
		Needs:       []string{cluster.PartVersion},
		Run: func(in Input) []Finding {
			id := in.Snapshot.Identity
			if below, err := belowFloor(acts(id)); below || err != nil {
				return nil // DRM001 says so
			}
			f := Finding{Code: "DRM032", Object: "server"}
			gate, seen := in.Snapshot.API.Features[cluster.FeatureExtendedResource]
			locked, _ := since(acts(id), lockedMinor)
			switch {
			case seen && gate.Enabled, locked:
				return nil // a role that lost rules does not unlock it
			case seen:
				f.Severity = Blocker
				f.Message = fmt.Sprintf("the feature gate %s of the API server is off (%s)", cluster.FeatureExtendedResource, gate.Evidence)
				f.Remedy = fmt.Sprintf("take %s=false out of the control plane's --feature-gates; `dramigrate check --only DRM032 --probe-gate` asks the server itself", cluster.FeatureExtendedResource)
			default:
				f.Severity = Unknown
				f.Message = fmt.Sprintf("whether the feature gate %s is on was not seen; in Kubernetes %s it is unless somebody switched it off", cluster.FeatureExtendedResource, acts(id))
				if why, _ := in.Snapshot.IsUnknown(cluster.PartFeatures); why != "" && in.Snapshot.Advice {
					f.Message += " (" + why + ")"
				}
				f.Remedy = "--probe-gate asks the server by a DeviceClass that is not stored"
				if in.Offline {
					f.Remedy = "add to --from the output of `" + collect(cluster.PartFeatures, in.Namespace) + "`"
				}
			}
			return []Finding{f}
		},
	}
}
