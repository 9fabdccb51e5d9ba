package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm025() Check {
	return Check{
		Code:        "DRM025",
		Title:       "It is not certain which DaemonSet is the plugin",
		Why:         "An unknown DaemonSet that mounts the kubelet's folder for device plugins may serve something else there, or only look. Editing the wrong one takes away what nobody meant, and leaves the plugin running.",
		Fix:         "Add the exclusion to the node affinity of the right DaemonSet yourself.",
		Sources:     []string{"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1, DevicePluginPath"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var out []Finding
			for _, p := range in.plugins() {
				if p.Guess && !p.Gate.Vendor && !gate.Excluded(p.DaemonSet) {
					out = append(out, Finding{
						Code:     "DRM025",
						Severity: Unknown,
						Object:   daemonSetObject(p.DaemonSet),
						Message: fmt.Sprintf("it may be the plugin for %s (%s), but so may another DaemonSet",
							in.Resource, few(p.Evidence)),
						Remedy: fmt.Sprintf("add the expression {key: %s, operator: DoesNotExist} to the node affinity of the right one yourself",
							gate.AllocationLabel),
					})
				}
			}
			return out
		},
	}
}
