package checks

import (
	"fmt"
	"path"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm063() Check {
	return Check{
		Code:       "DRM063",
		Title:      "The DRA driver looks for the GPU's driver in the wrong place",
		Why:        "The NVIDIA DRA driver finds nvidia-smi and libnvidia-ml.so.1 below one folder of the host, the same on every node: / where the driver is installed on the host, /run/nvidia/driver where NVIDIA's operator brings it in containers, /home/kubernetes/bin/nvidia on GKE. Below a wrong one its pod stays in its init container for ever and publishes nothing.",
		Fix:        "Set the chart value nvidiaDriverRoot to the folder that the nodes have. Nodes of different kinds need a release each, kept apart by node labels.",
		Sources:    []string{"kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, values.yaml, nvidiaDriverRoot; hack/kubelet-plugin-prestart.sh", "GKE docs, \"Set up dynamic resource allocation\""},
		Operations: []string{Prepare, Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			if !in.nvidia() {
				return nil
			}
			contained := in.containedDrivers()
			var out []Finding
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				root := driverRoot(d.DaemonSet)
				if root == "" {
					continue // not one of NVIDIA's charts, and nothing is known about it
				}
				up := map[string]bool{} // the nodes where it has come up
				for _, p := range in.daemonPods(d.DaemonSet)[d.DaemonSet] {
					up[p.Node] = up[p.Node] || p.Ready
				}
				proven := map[string]bool{} // what these nodes want
				for i := range in.Snapshot.Nodes {
					if n := &in.Snapshot.Nodes[i]; up[n.Name] {
						want, _ := wantedRoot(n, contained[n.Name])
						proven[want] = true
					}
				}
				wrong, doubtful := nodeGroups{}, nodeGroups{}
				for _, v := range in.targets() {
					want, why := wantedRoot(v.Node, contained[v.Node.Name])
					if want == root || proven[want] {
						continue
					}
					what := fmt.Sprintf("%s looks for the GPU's driver below %s, and here it is below %s: %s", daemonSetObject(d.DaemonSet), root, want, why)
					if why == onHost {
						doubtful.add(what, v.Node.Name)
					} else {
						wrong.add(what, v.Node.Name)
					}
				}
				remedy := func(want string) string {
					return "set the chart value nvidiaDriverRoot of " + daemonSetObject(d.DaemonSet) + want + ", and see that its pods leave their init container"
				}
				out = append(out, wrong.findings(in, Finding{Code: "DRM063", Severity: in.stops(), Remedy: remedy("")})...)
				out = append(out, doubtful.findings(in, Finding{Code: "DRM063", Severity: Warning, Remedy: remedy(" to / if the driver is installed on the host")})...)
			}
			return out
		},
	}
}

// driverRoot is the folder in which a DRA driver's pods look for the GPU's driver; empty
// if they do not say.
func driverRoot(ds *appsv1.DaemonSet) string {
	if root := envOf(ds, "", "NVIDIA_DRIVER_ROOT"); root != "" {
		return path.Clean(root)
	}
	for i := range ds.Spec.Template.Spec.Volumes {
		if v := &ds.Spec.Template.Spec.Volumes[i]; v.Name == "driver-root" && v.HostPath != nil {
			return path.Clean(v.HostPath.Path)
		}
	}
	return ""
}

// containedDrivers are the nodes on which the operator runs the GPU's driver in a
// container, and by which DaemonSet.
func (in Input) containedDrivers() map[string]string {
	out := map[string]string{}
	for ds, pods := range in.daemonPods(in.daemonSets(kernelDriver)...) {
		for _, p := range pods {
			out[p.Node] = daemonSetObject(ds)
		}
	}
	return out
}

// onHost is why a driver is looked for on the host: because nothing speaks for anything
// else.
const onHost = "no container brings it, so that it has to be part of the host"

// wantedRoot is the folder where a node has the GPU's driver, and by what that is seen.
func wantedRoot(n *corev1.Node, contained string) (root, why string) {
	switch {
	case contained != "":
		return "/run/nvidia/driver", contained + " brings it"
	case n.Labels[gkeNodePool] != "":
		return "/home/kubernetes/bin/nvidia", "GKE installs it there (label " + gkeNodePool + ")"
	case n.Labels[deployDriver] == "pre-installed":
		return "/", "label " + deployDriver + "=pre-installed: it is part of the host"
	default:
		return "/", onHost
	}
}

const (
	gkeNodePool  = "cloud.google.com/gke-nodepool"
	deployDriver = deployPrefix + "driver"
)
