package checks

import (
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/gpuid"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm093() Check {
	return Check{
		Code:       "DRM093",
		Title:      "A node's hardware is not what its plugin offers",
		Why:        "A run records what the kubelet advertises and then wants the driver to publish just that. A GPU that the plugin leaves out, because it is not healthy or was excluded, may be published by the driver; one that it offers and the hardware does not show is published by nobody. Either way the run stops at the node.",
		Fix:        "Mend or exclude the GPU for both, and probe the node again.",
		Sources:    []string{"NVIDIA/k8s-device-plugin, health checks", "kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin"},
		Advises:    true,
		Operations: []string{Migrate},
		Given:      byReports,
		Run: func(in Input) []Finding {
			var out []Finding
			open := nodeGroups{}
			for _, w := range in.witnesses() {
				node, ok := in.Snapshot.Node(w.Node)
				if !ok || in.outdated(w) != "" {
					continue // DRM059 says so
				}
				if at, known := in.Gate.StateOf(node.Labels); !known || at != gate.Plugin {
					continue // the plugin offers nothing there any more
				}
				missing, extra, why := in.unlike(w)
				if why != "" {
					open.add("whether the plugin offers what the hardware shows cannot be known: "+why, w.Node)
				}
				if len(missing)+len(extra) > 0 {
					out = append(out, Finding{
						Code: "DRM093", Severity: Warning, Object: "node/" + w.Node,
						Message: fmt.Sprintf("the hardware shows %s that the plugin does not offer, and the plugin offers %s that the hardware does not show", orNone(missing), orNone(extra)),
						Remedy:  "look at the plugin's pod on the node and at `nvidia-smi -L` there; a GPU that is to be left out has to be so for the driver as well",
					})
				}
			}
			return append(out, open.findings(in, Finding{
				Code: "DRM093", Severity: Info,
				Remedy: words.Command("probe", in.Pool.Name, "-o", "wide") + " shows what each node can tell; the run compares once more when the driver publishes",
			})...)
		},
	}
}

// unlike compares the hardware with what is offered of the plugin's resources: GPUs of
// which nothing is offered, and ids that are neither a GPU's nor a partition's; or it says
// why they cannot be compared.
func (in Input) unlike(w Witness) (missing, extra []string, why string) {
	switch {
	case w.GPUs == nil:
		return nil, nil, "its report has not all of its hardware"
	case w.Offered == nil:
		return nil, nil, "its report has nothing of the kubelet"
	}
	offered := map[string]bool{}
	for resource, ids := range w.Offered {
		if !slices.Contains(in.Resources, resource) {
			continue
		}
		for _, id := range ids {
			id = gpuid.Device(id)
			if _, err := gpuid.NewInventory(nil).OfPlugin(id); err != nil {
				return nil, nil, "the plugin's device IDs are no UUIDs"
			}
			offered[id] = true
		}
	}
	shown := map[string]bool{}
	for _, gpu := range sortedKeys(w.GPUs) {
		any := offered[gpu]
		shown[gpu] = true
		for _, partition := range w.GPUs[gpu] {
			shown[partition] = true
			any = any || offered[partition]
		}
		if !any {
			missing = append(missing, gpu)
		}
	}
	for _, id := range sortedKeys(offered) {
		if !shown[id] {
			extra = append(extra, id)
		}
	}
	return missing, extra, ""
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return few(names)
}
