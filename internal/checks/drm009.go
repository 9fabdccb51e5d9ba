package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm009() Check {
	return Check{
		Code:        "DRM009",
		Title:       "GPUs are partitioned (MIG)",
		Why:         "A MIG device is another type of device to the DRA driver. With the strategy \"single\" the plain resource name stands for slices, and a name maps to one class only, for the whole cluster. A GPU in MIG mode without slices is not published at all.",
		Fix:         "Switch MIG off on the pool, or leave it on the plugin; wait while MIG Manager is at work, and mend what it could not do.",
		Sources:     []string{"kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go", "NVIDIA/mig-parted", "GKE docs, \"Run multi-instance GPUs\""},
		Unskippable: true,
		Operations:  []string{Migrate},
		Run: func(in Input) []Finding {
			partitioned, busy, failed, silent := nodeGroups{}, nodeGroups{}, nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				why, state := mig(v), v.Node.Labels[migState]
				switch {
				case why != "":
					partitioned.add(why, v.Node.Name)
				case state == "" && in.nvidia() && !tellsParts(v.Node) && v.HasDevices(in.Resource, in.Driver):
					silent.add("no label tells whether the GPUs are partitioned", v.Node.Name)
				case state == "" || state == "success":
				case state == "failed":
					failed.add(fmt.Sprintf("MIG Manager could not make the partitions that were asked for, label %s=%s: how the GPUs are partitioned is not known", migState, state), v.Node.Name)
				default:
					busy.add(fmt.Sprintf("MIG Manager is changing the partitions, label %s=%s", migState, state), v.Node.Name)
				}
			}
			return slices.Concat(
				partitioned.findings(in, Finding{
					Code: "DRM009", Severity: Blocker,
					Remedy: "this version moves whole GPUs only: switch MIG off on the pool, or leave the pool on the plugin",
				}),
				busy.findings(in, Finding{
					Code: "DRM009", Severity: Blocker,
					Remedy: fmt.Sprintf("wait until the label %s is success, and plan again", migState),
				}),
				failed.findings(in, Finding{
					Code: "DRM009", Severity: Blocker,
					Remedy: fmt.Sprintf("MIG Manager's log on the node says why (`kubectl get pods -A -o wide -l app=nvidia-mig-manager`, then `kubectl logs`); mend that, delete its pod there so that it tries again, and plan again when the label %s is success", migState),
				}),
				silent.findings(in, Finding{
					Code: "DRM009", Severity: Info,
					Remedy: "the probe of each node, before its plugin is switched off, looks at the device IDs and stops if they are partitions",
				}))
		},
	}
}

const (
	migPrefix   = "nvidia.com/mig-"
	migConfig   = "nvidia.com/mig.config"
	migDisabled = "all-disabled"
	// migState is what MIG Manager is at; it stops the plugin and may restart the
	// node's kubelet meanwhile (NVIDIA/mig-parted).
	migState = "nvidia.com/mig.config.state"
	// gkePartition is how GKE says that it partitions a node pool's GPUs; these are
	// advertised as nvidia.com/gpu (GKE docs, "Run multi-instance GPUs").
	gkePartition = "cloud.google.com/gke-gpu-partition-size"
)

// tellsParts says that whoever labels the node would have said that its GPUs are
// partitioned: GPU Feature Discovery by their product, GKE by a label of the node pool.
func tellsParts(n *corev1.Node) bool {
	return n.Labels[gfdCount] != "" || n.Labels[gfdProduct] != "" || n.Labels[migConfig] != "" || n.Labels[gkeNodePool] != ""
}

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
	if p := v.Node.Labels[gkePartition]; p != "" {
		return fmt.Sprintf("label %s=%s", gkePartition, p)
	}
	if c := v.Node.Labels[migConfig]; c != "" && c != migDisabled {
		return fmt.Sprintf("label %s=%s", migConfig, c)
	}
	return ""
}
