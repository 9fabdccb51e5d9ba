package checks

import (
	"fmt"
	"slices"
	"strings"
)

func drm077() Check {
	return Check{
		Code:       "DRM077",
		Title:      "The pool's nodes have different configurations of the plugin",
		Why:        "NVIDIA's plugin takes its configuration by the node label nvidia.com/device-plugin.config: sharing, MIG strategy and names may differ from node to node. By DRA they all offer whole devices, so that a pool which looked alike to nobody becomes alike, and a rollback brings the differences back.",
		Fix:        "See what each configuration does, and move nodes that share devices, or partition them, as a pool of their own, or not at all.",
		Sources:    []string{"NVIDIA/k8s-device-plugin, README, \"Updating Per-Node Configuration With a Node Label\", v0.20.0"},
		Operations: []string{Migrate},
		Advises:    true,
		Run: func(in Input) []Finding {
			by := map[string][]string{}
			for _, v := range in.targets() {
				by[v.Node.Labels[pluginConfig]] = append(by[v.Node.Labels[pluginConfig]], v.Node.Name)
			}
			if !in.nvidia() || in.Pool.Name == "" || len(by) < 2 {
				return nil
			}
			var parts []string
			for _, value := range sortedKeys(by) {
				slices.Sort(by[value])
				what := "without it"
				if value != "" {
					what = value
				}
				parts = append(parts, fmt.Sprintf("%s: %s", what, nodeList(by[value])))
			}
			return []Finding{{
				Code: "DRM077", Severity: Warning, Object: in.poolObject(),
				Message: "label " + pluginConfig + " differs within the pool (" + strings.Join(parts, "; ") + ")",
				Remedy:  "see the configurations in the plugin's ConfigMap, and move those nodes alone that have whole, unshared devices: --selector with " + pluginConfig,
			}}
		},
	}
}

const pluginConfig = "nvidia.com/device-plugin.config"
