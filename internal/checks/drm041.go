package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm041() Check {
	return Check{
		Code:       "DRM041",
		Title:      "The driver's slices of a node are incomplete, or hold no device",
		Why:        "The scheduler passes over a pool of devices that has not all slices of its newest generation, so pods wait although the devices are there. A driver that looked before the GPU's own software was there publishes a slice without devices, and need not look again.",
		Fix:        "See the log of the driver's pod on the node, and restart it when the GPU's software is there: the driver root of its installation (nvidiaDriverRoot) has to be the node's.",
		Sources:    []string{"k8s.io/dynamic-resource-allocation/structured, pools_stable.go, v0.37.2", "kubernetes-sigs/dra-driver-nvidia-gpu#1008"},
		Operations: []string{Prepare, Migrate, Rollback, MigrateInto, Verify},
		Advises:    true,
		Needs:      []string{cluster.PartSlices},
		Run: func(in Input) []Finding {
			partial, empty := nodeGroups{}, nodeGroups{}
			for name, v := range in.publishing() {
				switch devices, incomplete := cluster.DevicesOf(v.Slices, in.Driver); {
				case incomplete != "":
					partial.add(incomplete, name)
				case len(devices) == 0:
					empty.add(fmt.Sprintf("%s publishes a slice without devices", in.Driver), name)
				}
			}
			// Nodes of all pools: a mapping that is live sends pods there.
			in.Pool = cluster.NodePool{}
			return append(
				partial.findings(in, Finding{Code: "DRM041", Severity: Warning, Remedy: "it passes by itself after a change; if it stays: `kubectl get resourceslices`, and restart the driver's pod on the node"}),
				empty.findings(in, Finding{Code: "DRM041", Severity: Warning, Remedy: "see the log of the driver's pod on the node, and restart it when the GPU's software is there"})...)
		},
	}
}
