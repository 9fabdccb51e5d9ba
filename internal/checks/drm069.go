package checks

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm069() Check {
	return Check{
		Code:       "DRM069",
		Title:      "GPU Feature Discovery leaves with the plugin",
		Why:        "The chart of NVIDIA's plugin has one value affinity and one value nodeSelector for the plugin, the MPS daemon and GPU Feature Discovery. If these keep the plugin off a node, Feature Discovery goes as well, and with it the labels nvidia.com/gpu.product, gpu.count, gpu.memory and the others: pods that select nodes by them are no longer scheduled there.",
		Fix:        "Run GPU Feature Discovery from a release of its own (gfd.enabled=true, devicePlugin.enabled=false), without the tool's expression, before the values of the plugin's release change.",
		Sources:    []string{"NVIDIA/k8s-device-plugin, deployments/helm/nvidia-device-plugin, templates/daemonset-gfd.yml, v0.20.0"},
		Operations: []string{Prepare, Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Advises:    true,
		Run: func(in Input) []Finding {
			discovery := in.daemonSets(featureDiscovery)
			if len(discovery) == 0 {
				return nil
			}
			leaves := nodeGroups{}
			for _, v := range in.targets() {
				for _, ds := range discovery {
					before, _ := gate.Lands(ds, in.Gate.With(v.Node, gate.Plugin))
					after, _ := gate.Lands(ds, in.Gate.With(v.Node, gate.DRA))
					if before && !after {
						leaves.add(daemonSetObject(ds)+" leaves the node with the plugin, and its labels "+gfdProduct+", "+gfdCount+" and others go", v.Node.Name)
					}
				}
			}
			remedy := "run GPU Feature Discovery from a release of its own, whose affinity does not heed " + gate.AllocationLabel
			out := leaves.findings(in, Finding{Code: "DRM069", Severity: Warning, Remedy: remedy})
			if in.Operation != Prepare {
				return out
			}
			for _, p := range in.plugins() {
				if !p.Owner.Owned() || gate.Excluded(p.DaemonSet) {
					continue // a live edit is of this DaemonSet alone
				}
				for _, ds := range discovery {
					if sameRelease(p.DaemonSet, ds) {
						out = append(out, Finding{
							Code: "DRM069", Severity: Info, Object: daemonSetObject(p.DaemonSet),
							Message: fmt.Sprintf("its chart's values affinity and nodeSelector are also those of %s, which gives nodes their labels nvidia.com/gpu.*", daemonSetObject(ds)),
							Remedy:  remedy,
						})
					}
				}
			}
			return out
		},
	}
}

// featureDiscovery recognises GPU Feature Discovery, which has the plugin's image and
// labels: by what its container is called or runs.
func featureDiscovery(ds *appsv1.DaemonSet) bool {
	const name = "gpu-feature-discovery"
	return slices.ContainsFunc(ds.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return strings.Contains(c.Name, name) || hasImage([]string{c.Image}, "nvidia/"+name) || slices.Contains(c.Command, name)
	})
}

// sameRelease says that one chart of NVIDIA's plugin made both.
func sameRelease(a, b *appsv1.DaemonSet) bool {
	const instance = "app.kubernetes.io/instance"
	release := templateLabel(a, instance)
	return strings.HasPrefix(templateLabel(a, helmChart), "nvidia-device-plugin-") &&
		a.Namespace == b.Namespace && release != "" && release == templateLabel(b, instance)
}
