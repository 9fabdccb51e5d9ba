package checks

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm074() Check {
	return Check{
		Code:       "DRM074",
		Title:      "Two drivers on a node listen on one port",
		Why:        "DRA drivers answer health checks on a port: NVIDIA's and Intel's both on 51516, NVIDIA's compute domains and the example driver on 51515. In pods with the host's network the second one does not come up.",
		Fix:        "Give one of them another port (kubeletPlugin.containers.gpus.healthcheckPort in NVIDIA's chart), or no host network.",
		Sources:    []string{"kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, values.yaml, healthcheckPort", "intel/intel-resource-drivers-for-kubernetes"},
		Operations: []string{Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Advises:    true,
		Run: func(in Input) []Finding {
			clash := nodeGroups{}
			for _, mine := range in.Inventory.DriversFor(in.Driver) {
				for _, other := range in.Inventory.Drivers {
					if other.DaemonSet == mine.DaemonSet || !mine.DaemonSet.Spec.Template.Spec.HostNetwork || !other.DaemonSet.Spec.Template.Spec.HostNetwork {
						continue
					}
					port := sharedPort(mine.DaemonSet, other.DaemonSet)
					if port == "" {
						continue
					}
					for _, v := range in.targets() {
						node := in.Gate.With(v.Node, gate.DRA)
						first, _ := gate.Lands(mine.DaemonSet, node)
						if second, _ := gate.Lands(other.DaemonSet, node); first && second {
							clash.add(fmt.Sprintf("%s and %s would both listen on the host's port %s", daemonSetObject(mine.DaemonSet), daemonSetObject(other.DaemonSet), port), v.Node.Name)
						}
					}
				}
			}
			return clash.findings(in, Finding{
				Code: "DRM074", Severity: Warning,
				Remedy: "give one of them another port: the chart value kubeletPlugin.containers.gpus.healthcheckPort",
			})
		},
	}
}

// sharedPort is a health-check port that containers of both have; empty if none.
func sharedPort(a, b *appsv1.DaemonSet) string {
	theirs := map[string]bool{}
	for _, c := range containersOf(b) {
		theirs[healthPort(b, c.Name)] = true
	}
	for _, c := range containersOf(a) {
		if port := healthPort(a, c.Name); port != "" && theirs[port] {
			return port
		}
	}
	return ""
}

// healthPort is the port of a driver's container: as its environment says, else as
// Intel's driver has it.
func healthPort(ds *appsv1.DaemonSet, container string) string {
	intel := ""
	if hasImage(imagesOf(ds), "intel/intel-gpu-resource-driver") {
		intel = "51516"
	}
	return cmp.Or(envOf(ds, container, "HEALTHCHECK_PORT"), intel)
}
