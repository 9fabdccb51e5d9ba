package checks

import (
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm113() Check {
	return Check{
		Code:       "DRM113",
		Title:      "Pods see devices that they were not given",
		Why:        "A privileged container sees every device of its node, and one that sets NVIDIA_VISIBLE_DEVICES may be given devices by the container runtime without asking anybody. Neither the plugin nor DRA counts them, so that a device that such a pod uses is given to another as well.",
		Fix:        "Take the variable and the privilege away and let the pod ask for the resource.",
		Sources:    []string{"NVIDIA/k8s-device-plugin#1294", "NVIDIA Container Toolkit docs, accept-nvidia-visible-devices-envvar-when-unprivileged"},
		Advises:    true,
		Operations: []string{Migrate},
		Needs:      []string{cluster.PartPods},
		Run: func(in Input) []Finding {
			g := ownerGroups{}
			for _, v := range in.targets() {
				for i := range v.Pods {
					p := &v.Pods[i]
					asks := in.asks(p)
					switch {
					case p.Finished() || p.IsHelper() || p.Static || p.Owner.Kind == "DaemonSet": // of those that look after the node
					case !asks && !slices.Contains([]string{"", "void", "none"}, p.VisibleDevices):
						g.add(p, fmt.Sprintf("sets NVIDIA_VISIBLE_DEVICES=%s and asks for no device: the drain of GPU pods leaves it on the node with what it uses", p.VisibleDevices))
					case asks && p.Privileged:
						g.add(p, "is privileged and sees all devices of its node, whatever it was given")
					}
				}
			}
			return g.findings(Finding{Code: "DRM113", Severity: Warning, Remedy: "let it ask for " + in.Resource + " without the variable and unprivileged; or move the pool with --drain all"})
		},
	}
}
