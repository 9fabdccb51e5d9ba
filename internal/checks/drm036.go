package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// nodeAllocatableFixed is the minor version in which both features work together
// (kubernetes/kubernetes#141556; pkg/apis/core/validation/validation.go has not got it
// in v1.37.2).
const nodeAllocatableFixed = 38

func drm036() Check {
	return Check{
		Code:       "DRM036",
		Title:      "DRANodeAllocatableResources is on beside DRAExtendedResource",
		Why:        "Up to Kubernetes 1.37 the API server refuses the status of a pod that gets an extended resource by DRA from a device which declares nodeAllocatableResources, as it looks for the claim among the pod's own. Such a pod is never bound. The gate is alpha and off by default.",
		Fix:        "Switch DRANodeAllocatableResources off, or let the driver publish its devices without nodeAllocatableResources.",
		Sources:    []string{"kubernetes/kubernetes#141467, #141556", "KEP-5517"},
		Operations: []string{Prepare, Migrate, MigrateInto, Verify},
		Needs:      []string{cluster.PartVersion, cluster.PartSlices},
		Run: func(in Input) []Finding {
			id := in.Snapshot.Identity
			if fixed, err := since(id.ServerVersion, nodeAllocatableFixed); fixed || err != nil {
				return nil
			}
			on := in.Snapshot.API.Features[cluster.FeatureNodeAllocatable]
			unseen, blind := in.Snapshot.IsUnknown(cluster.PartFeatures)
			device := in.nodeAllocatableDevice()
			f := Finding{Code: "DRM036", Object: "server", Remedy: fmt.Sprintf("switch %s off, or move the pool on Kubernetes 1.%d", cluster.FeatureNodeAllocatable, nodeAllocatableFixed)}
			switch {
			case device != "":
				// The server keeps the field only while the gate is on.
				f.Severity = Blocker
				f.Message = fmt.Sprintf("%s declares nodeAllocatableResources: on Kubernetes %s no pod that asks for %s can be bound to it", device, id.ServerVersion, in.Resource)
			case on.Enabled:
				f.Severity = Warning
				f.Message = fmt.Sprintf("the feature gate %s is on (%s): should %s declare nodeAllocatableResources of its devices, pods that ask for %s are never bound on Kubernetes %s",
					cluster.FeatureNodeAllocatable, on.Evidence, in.Driver, in.Resource, id.ServerVersion)
			case blind && in.Snapshot.Advice:
				f.Severity = Info
				f.Message = fmt.Sprintf("whether the feature gate %s is on could not be seen (%s); it is alpha, and off unless somebody has switched it on", cluster.FeatureNodeAllocatable, unseen)
				f.Remedy = "see by `" + collect(cluster.PartFeatures, in.Namespace) + "` whether the scheduler may do what the gate asks of it"
			default:
				return nil
			}
			return []Finding{f}
		},
	}
}

// nodeAllocatableDevice names the first of the driver's devices that declares what it
// takes of its node's resources; empty if none does.
func (in Input) nodeAllocatableDevice() string {
	for i := range in.Snapshot.Slices {
		spec := &in.Snapshot.Slices[i].Spec
		if spec.Driver != in.Driver {
			continue
		}
		for j := range spec.Devices {
			if len(spec.Devices[j].NodeAllocatableResources) > 0 {
				return fmt.Sprintf("device %s of pool %s", spec.Devices[j].Name, spec.Pool.Name)
			}
		}
	}
	return ""
}
