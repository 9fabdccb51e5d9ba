package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// drm009: a MIG device is another device type to the DRA driver. With the strategy
// "single" the plain resource name stands for slices, and a name can be mapped to
// one class only, for the whole cluster. A GPU in MIG mode without slices is not
// published at all (kubernetes-sigs/dra-driver-nvidia-gpu, deviceinfo.go).
func drm009() Check {
	return Check{
		Code:       "DRM009",
		Title:      "GPUs are partitioned (MIG)",
		Operations: []string{Migrate},
		Run: func(in Input) []Finding {
			partitioned := nodeGroups{}
			for _, v := range in.targets() {
				if why := mig(v); why != "" {
					partitioned.add(why, v.Node.Name)
				}
			}
			return partitioned.findings(in, Finding{
				Code:     "DRM009",
				Severity: Blocker,
				Remedy:   "this version moves whole GPUs only: switch MIG off on the pool, or leave the pool on the plugin",
			})
		},
	}
}

const (
	migPrefix   = "nvidia.com/mig-"
	migConfig   = "nvidia.com/mig.config"
	migDisabled = "all-disabled"
)

// mig says by what a node shows that its GPUs are partitioned; empty if by nothing.
// The label nvidia.com/mig.strategy alone shows nothing: it is "single" on many
// clusters without a single partition.
func mig(v cluster.NodeView) string {
	for _, name := range slices.Sorted(maps.Keys(v.Node.Status.Capacity)) {
		if n, _ := v.Capacity(string(name)); n > 0 && strings.HasPrefix(string(name), migPrefix) {
			return fmt.Sprintf("advertises %d of %s", n, name)
		}
	}
	if p := v.Node.Labels[gfdProduct]; strings.Contains(p, "-MIG-") {
		return fmt.Sprintf("label %s=%s", gfdProduct, p)
	}
	if c := v.Node.Labels[migConfig]; c != "" && c != migDisabled {
		return fmt.Sprintf("label %s=%s", migConfig, c)
	}
	return ""
}
