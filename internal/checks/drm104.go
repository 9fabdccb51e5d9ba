package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// sharedInitMinor is the minor version from which on serial init containers are given the
// devices that later containers get, as a device plugin does it
// (kubernetes/kubernetes#134882).
const sharedInitMinor = 35

func drm104() Check {
	return Check{
		Code:       "DRM104",
		Title:      "GPUs in init containers need more devices on an old scheduler",
		Why:        "Up to Kubernetes 1.34 each init container got devices of its own in the generated claim, while the plugin hands the same ones out again. From 1.35 on the numbers are the same.",
		Fix:        "Upgrade the control plane, or have as many free devices as is said.",
		Sources:    []string{"kubernetes/kubernetes#134880, #134882", "pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, v1.34.4 and v1.37.2"},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom},
		Needs:      append(workloadParts(), cluster.PartPods, cluster.PartClaims, cluster.PartVersion),
		Run: func(in Input) []Finding {
			minor, known := in.serverMinor()
			if known && minor >= sharedInitMinor {
				return nil
			}
			g := in.askers(func(p *cluster.Pod) string {
				apart, together := apart(p, in.Resource), p.DevicesNeeded(in.Resource)
				switch {
				case apart == together:
					return ""
				case !known:
					return fmt.Sprintf("asks for %s in init containers; it needs %d devices, or %d by a scheduler of 1.34, and which one runs here cannot be known", in.Resource, together, apart)
				default:
					return fmt.Sprintf("asks for %s in init containers: the claim of a 1.%d scheduler has %d devices for it, where the plugin needs %d", in.Resource, minor, apart, together)
				}
			})
			return g.findings(Finding{Code: "DRM104", Severity: Warning, Remedy: "upgrade the control plane to 1.35 or later: `kubectl version` shows what it is"})
		},
	}
}

// apart is how many devices the pod's containers ask for if none is used twice.
func apart(p *cluster.Pod, resource string) int64 {
	var sum int64
	for _, r := range p.Requests {
		if string(r.Resource) == resource {
			sum += r.Count
		}
	}
	return sum
}
