package gate

import (
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// signature is what a known plugin or driver is recognised by. It never suffices:
// what the pods do has to fit as well, because GPU Feature Discovery, for one, has
// the plugin's image and labels.
type signature struct {
	// labels are alternatives, of the pod template or of the DaemonSet.
	labels map[string]string
	// images are alternatives: the end of an image's repository.
	images []string
	// resources are prefixes of the extended resources of a plugin.
	resources []string
	// drivers are the DRA names of a driver.
	drivers []string
	// containers are the names of the containers that serve one DRA name each, where
	// the program has several and its installation may leave some out.
	containers map[string]string
}

// label values of one key that different packagings of one program use.
func oneOf(key string, values ...string) []map[string]string {
	var out []map[string]string
	for _, v := range values {
		out = append(out, map[string]string{key: v})
	}
	return out
}

func signatures(base signature, labels ...[]map[string]string) []signature {
	out := []signature{base}
	for _, alternatives := range labels {
		for _, l := range alternatives {
			s := base
			s.labels, s.images = l, nil
			out = append(out, s)
		}
	}
	return out
}

// pluginSignatures are the device plugins that the tool knows. Their resources are
// narrower than the vendor's domain: nvidia.com/ also holds what network plugins
// serve, which never goes away with the GPU plugin.
func pluginSignatures() []signature {
	return slices.Concat(
		signatures(signature{
			images: []string{
				"nvidia/k8s-device-plugin",               // NVIDIA/k8s-device-plugin
				"nvidia/kubevirt-gpu-device-plugin",      // GPU Operator, sandbox workloads
				"gke.gcr.io/nvidia-gpu-device-plugin",    // GKE
				"run-ai/fake-gpu-operator/device-plugin", // run-ai/fake-gpu-operator
				"projecthami/hami",                       // HAMi
			},
			resources: []string{"nvidia.com/gpu", "nvidia.com/mig-"},
		},
			oneOf("name", "nvidia-device-plugin-ds"),
			oneOf("app", "nvidia-device-plugin-daemonset", "nvidia-sandbox-device-plugin-daemonset"),
			oneOf("app.kubernetes.io/name", "nvidia-device-plugin"),
			oneOf("k8s-app", "nvidia-gpu-device-plugin"),
			oneOf("app.kubernetes.io/component", "hami-device-plugin"),
		),
		signatures(signature{images: []string{"rocm/k8s-device-plugin"}, resources: []string{"amd.com/"}},
			oneOf("name", "amdgpu-dp-ds", "amd-gpu-dp-ds")),
		signatures(signature{images: []string{"intel/intel-gpu-plugin"}, resources: []string{"gpu.intel.com/"}},
			oneOf("app", "intel-gpu-plugin")),
		signatures(signature{resources: []string{"huawei.com/"}}, oneOf("name", "ascend-device-plugin-ds")),
		// Plugins of other hardware: known, so that they are not taken for a GPU's.
		signatures(signature{images: []string{"kubevirt/virt-handler"}, resources: []string{"devices.kubevirt.io/"}},
			oneOf("kubevirt.io", "virt-handler")),
		signatures(signature{images: []string{"sriov-network-device-plugin", "k8s-rdma-shared-dev-plugin"}},
			oneOf("name", "sriov-device-plugin", "rdma-shared-dp-ds"), oneOf("app", "sriovdp")),
	)
}

// driverSignatures are the DRA drivers that the tool knows.
func driverSignatures() []signature {
	nvidia := []string{"gpu.nvidia.com", "compute-domain.nvidia.com"}
	return slices.Concat(
		signatures(signature{
			images:  []string{"dra-driver-nvidia/dra-driver-nvidia-gpu", "nvidia/k8s-dra-driver-gpu"},
			drivers: nvidia,
			// kubernetes-sigs/dra-driver-nvidia-gpu, chart, templates/kubeletplugin.yaml
			containers: map[string]string{"gpu.nvidia.com": "gpus", "compute-domain.nvidia.com": "compute-domains"},
		},
			oneOf("dra-driver-nvidia-gpu-component", "kubelet-plugin"),
			oneOf("nvidia-dra-driver-gpu-component", "kubelet-plugin"),
			oneOf("app", "nvidia-dra-driver-kubelet-plugin"),
		),
		signatures(signature{images: []string{"rocm/k8s-gpu-dra-driver"}, drivers: []string{"gpu.amd.com"}}),
		signatures(signature{images: []string{"intel/intel-gpu-resource-driver"}, drivers: []string{"gpu.intel.com"}}),
	)
}

// recognise finds the first known program whose label or image the DaemonSet has,
// and says which of them it was.
func recognise(ds *appsv1.DaemonSet, known []signature) (signature, string, bool) {
	for _, s := range known {
		for key, value := range s.labels {
			if ds.Spec.Template.Labels[key] == value || ds.Labels[key] == value {
				return s, "label " + key + "=" + value, true
			}
		}
		for _, image := range images(ds) {
			for _, suffix := range s.images {
				if repo := repository(image); repo == suffix || strings.HasSuffix(repo, "/"+suffix) {
					return s, "image " + image, true
				}
			}
		}
	}
	return signature{}, "", false
}

// lacks are the DRA names whose container a DaemonSet has not, while it has that of
// another; nothing is known of one that has none of them.
func (s signature) lacks(ds *appsv1.DaemonSet) []string {
	var out []string
	for _, driver := range slices.Sorted(maps.Keys(s.containers)) {
		if !slices.ContainsFunc(containers(ds), func(c corev1.Container) bool { return c.Name == s.containers[driver] }) {
			out = append(out, driver)
		}
	}
	if len(out) == len(s.containers) {
		return nil
	}
	return out
}

// serves says whether a resource is one of the program's.
func (s signature) serves(resource string) bool {
	return slices.ContainsFunc(s.resources, func(prefix string) bool { return strings.HasPrefix(resource, prefix) })
}

func images(ds *appsv1.DaemonSet) []string {
	var out []string
	for _, c := range containers(ds) {
		out = append(out, c.Image)
	}
	return out
}

func containers(ds *appsv1.DaemonSet) []corev1.Container {
	return slices.Concat(ds.Spec.Template.Spec.InitContainers, ds.Spec.Template.Spec.Containers)
}

// repository is an image's name without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	slash := strings.LastIndex(image, "/")
	if colon := strings.LastIndex(image, ":"); colon > slash {
		image = image[:colon]
	}
	return image
}

// hostPath finds a volume of the host whose folder satisfies is.
func hostPath(ds *appsv1.DaemonSet, is func(clean string) bool) (string, bool) {
	for i := range ds.Spec.Template.Spec.Volumes {
		if h := ds.Spec.Template.Spec.Volumes[i].HostPath; h != nil && is(path.Clean(h.Path)) {
			return h.Path, true
		}
	}
	return "", false
}

// endsIn accepts a folder of that name below any kubelet root.
func endsIn(folder string) func(string) bool {
	return func(p string) bool { return path.Base(p) == folder }
}
