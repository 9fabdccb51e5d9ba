package checks

import (
	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm071() Check {
	return Check{
		Code:       "DRM071",
		Title:      "Nodes lack the labels by which NVIDIA's charts find them",
		Why:        "The charts of NVIDIA's driver and plugin run on nodes that Node Feature Discovery has labelled as having an NVIDIA device, or that somebody has labelled nvidia.com/gpu.present=true. On a node with none of these labels the driver does not come, and a plugin from a static manifest, which asks for no label, runs there all the same.",
		Fix:        "Label the nodes nvidia.com/gpu.present=true, in the configuration of their node group as well; or run Node Feature Discovery on them.",
		Sources:    []string{"kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, values.yaml, kubeletPlugin.affinity", "eksctl-io/eksctl#8858"},
		Operations: []string{Prepare},
		Advises:    true,
		Needs:      []string{cluster.PartDaemonSets},
		Run: func(in Input) []Finding {
			if !in.nvidia() || len(in.Inventory.DriversFor(in.Driver)) > 0 {
				return nil // DRM022 asks the driver that is there
			}
			bare := nodeGroups{}
			for _, v := range in.targets() {
				if n, _ := v.Capacity(in.Resource); n > 0 && !chartLabelled(v) {
					bare.add("has none of the labels that the driver's chart looks for ("+gpuPresent+"=true, or those of Node Feature Discovery)", v.Node.Name)
				}
			}
			return bare.findings(in, Finding{
				Code: "DRM071", Severity: Warning,
				Remedy: "`kubectl label node NODE " + gpuPresent + "=true`, for nodes to come in the configuration of their node group; or install the chart with another kubeletPlugin.affinity",
			})
		},
	}
}

const gpuPresent = "nvidia.com/gpu.present"

// chartLabelled says that the default affinity of NVIDIA's charts matches the node.
func chartLabelled(v cluster.NodeView) bool {
	l := v.Node.Labels
	return l[gpuPresent] == "true" || l[nfdPrefix+"pci-10de.present"] == "true" || l[nfdPrefix+"cpu-model.vendor_id"] == "NVIDIA"
}

const nfdPrefix = "feature.node.kubernetes.io/"
