package checks

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm072() Check {
	return Check{
		Code:       "DRM072",
		Title:      "The driver makes MIG devices itself, and removes those that it did not make",
		Why:        "With the feature gate DynamicMIG the NVIDIA driver destroys, when it starts, each MIG device that is not in its checkpoint, and switches MIG mode off. Partitions that MIG Manager or a person made are gone, work on them is lost, and a plugin that comes back by a rollback finds none.",
		Fix:        "Install the driver without DynamicMIG, or keep it off nodes with partitions.",
		Sources:    []string{"kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/device_state.go, DestroyUnknownMIGDevices", "kubernetes-sigs/dra-driver-nvidia-gpu#1018"},
		Operations: []string{Prepare, Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var out []Finding
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				if on, set := featureGate(d.DaemonSet, "DynamicMIG"); !on || !set {
					continue
				}
				partitioned, whole := nodeGroups{}, nodeGroups{}
				for _, v := range in.targets() {
					if why := mig(v); why != "" {
						partitioned.add(why+", and "+daemonSetObject(d.DaemonSet)+" runs with DynamicMIG=true: it destroys the partitions", v.Node.Name)
					} else if in.Operation == Migrate {
						whole.add(daemonSetObject(d.DaemonSet)+" runs with DynamicMIG=true: when it starts here it destroys any MIG device that it did not make", v.Node.Name)
					}
				}
				remedy := "take DynamicMIG out of the chart value featureGates"
				out = slices.Concat(out,
					partitioned.findings(in, Finding{Code: "DRM072", Severity: Blocker, Remedy: remedy + ", or keep the driver off these nodes"}),
					whole.findings(in, Finding{Code: "DRM072", Severity: Warning, Remedy: remedy + " unless that is wanted"}))
			}
			return out
		},
	}
}

// featureGate is a gate of the NVIDIA driver; set is false if its pods do not name it,
// and the program's own default holds.
func featureGate(ds *appsv1.DaemonSet, name string) (on, set bool) {
	for _, c := range containersOf(ds) {
		for _, pair := range strings.Split(envOf(ds, c.Name, "FEATURE_GATES"), ",") {
			if key, value, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && key == name {
				on, set = on || strings.EqualFold(value, "true"), true
			}
		}
	}
	return on, set
}
