package checks

import (
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm073() Check {
	return Check{
		Code:       "DRM073",
		Title:      "The driver does not watch the health of GPUs",
		Why:        "NVIDIA's plugin takes a GPU with a critical error out of what the node offers. The driver does so only with its feature gate NVMLDeviceHealthCheck, which is off by default: a GPU that the plugin held back is published as any other, and given to pods. The restart of a plugin by a rollback, too, makes a broken GPU healthy until it fails again.",
		Fix:        "Set featureGates.NVMLDeviceHealthCheck=true in the driver's chart (not together with DynamicMIG), and have broken GPUs repaired before the move.",
		Sources:    []string{"kubernetes-sigs/dra-driver-nvidia-gpu, pkg/featuregates/featuregates.go", "NVIDIA/k8s-device-plugin#111"},
		Operations: []string{Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Advises:    true,
		Run: func(in Input) []Finding {
			var out []Finding
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				if on, _ := featureGate(d.DaemonSet, "NVMLDeviceHealthCheck"); on || !hasContainer(d.DaemonSet, "gpus") {
					continue // it watches, or it is not NVIDIA's
				}
				held := nodeGroups{}
				for _, v := range in.targets() {
					all, _ := v.Capacity(in.Resource)
					if healthy, _ := v.Allocatable(in.Resource); healthy > 0 && healthy < all {
						held.add(fmt.Sprintf("the plugin holds %d of %d %s back as unhealthy; %s publishes them as any other", all-healthy, all, in.Resource, daemonSetObject(d.DaemonSet)), v.Node.Name)
					}
				}
				remedy := "set featureGates.NVMLDeviceHealthCheck=true in the driver's chart"
				found := held.findings(in, Finding{Code: "DRM073", Severity: Warning, Remedy: remedy + ", or have the GPU repaired first"})
				if len(found) == 0 && len(in.targets()) > 0 {
					found = []Finding{{
						Code: "DRM073", Severity: Info, Object: daemonSetObject(d.DaemonSet),
						Message: "runs without the feature gate NVMLDeviceHealthCheck: a GPU that fails is still given to pods, where the plugin would hold it back",
						Remedy:  remedy,
					}}
				}
				out = slices.Concat(out, found)
			}
			return out
		},
	}
}
