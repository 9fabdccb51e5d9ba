package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

func drm027() Check {
	return Check{
		Code:        "DRM027",
		Title:       "The driver cannot take over the plugin's devices",
		Why:         "A node is opened only when the driver publishes the very devices that the plugin had. A driver that does not run its part for them, or that publishes devices without what they are compared by (a UUID, a PCI address, a serial number), would leave the first node closed.",
		Fix:         "Switch that part of the driver on, for switched nodes alone.",
		Sources:     []string{"kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, values.yaml, resources.gpus.enabled"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods, cluster.PartSlices},
		Run: func(in Input) []Finding {
			var out []Finding
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				if slices.Contains(d.Lacks, in.Driver) {
					out = append(out, Finding{
						Code:     "DRM027",
						Severity: Blocker,
						Object:   daemonSetObject(d.DaemonSet),
						Message:  fmt.Sprintf("its containers do not serve %s: that part of the driver is switched off", in.Driver),
						Remedy:   "switch it on in the driver's installation (chart value resources.gpus.enabled), on switched nodes alone",
					})
				}
			}
			join := vendor.JoinOf(in.Driver)
			if join.Key == vendor.NoKey {
				return out // DRM079 says so
			}
			for i := range in.Snapshot.Slices {
				devices, _ := cluster.DevicesOf(in.Snapshot.Slices[i:i+1], in.Driver)
				at := slices.IndexFunc(devices, func(d cluster.Device) bool { return d.Key == "" })
				if at < 0 {
					continue
				}
				return append(out, Finding{
					Code:     "DRM027",
					Severity: Blocker,
					Object:   "driver/" + in.Driver,
					Message: fmt.Sprintf("device %s of pool %s has no attribute %s, by which the driver's devices are compared with the plugin's",
						devices[at].Name, devices[at].Pool, strings.Join(join.Attributes, " or ")),
					Remedy: fmt.Sprintf("this version moves only devices that both mechanisms know by one %s: leave the pool on the plugin", join.Key),
				})
			}
			return out
		},
	}
}
