package manifests

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// A Make is what is installed and asked for, and what is seen of it, by the maker of the
// GPUs.
type Make struct {
	// Resource is the extended resource, Driver the DRA driver's name.
	Resource corev1.ResourceName
	Driver   string
	// DriverSet is the driver's DaemonSet.
	DriverSet string
	// Key is the attribute by which the driver names a GPU as the plugin does.
	Key resourceapi.QualifiedName
	// Image prints the GPUs that its container sees and waits; Seen finds their keys in
	// what it prints.
	Image string
	Seen  *regexp.Regexp
	// NodeLabels are on every node that has such GPUs.
	NodeLabels map[string]string

	plugin, driver string
}

// NVIDIA is the make of what this package holds unless it says otherwise.
func NVIDIA() Make {
	return Make{
		Resource: resourceGPU, Driver: "gpu.nvidia.com", DriverSet: "dra-driver-nvidia-gpu-kubelet-plugin",
		Key: "uuid", Image: WorkloadImage, Seen: regexp.MustCompile(`UUID: (GPU-[0-9a-f-]+)`),
		NodeLabels: map[string]string{"nvidia.com/gpu.present": "true"},
		plugin:     "plugin/static.yaml", driver: "driver",
	}
}

// AMD is AMD's, whose GPUs have no UUID.
func AMD() Make {
	return Make{
		Resource: "amd.com/gpu", Driver: "gpu.amd.com", DriverSet: "k8s-gpu-dra-driver-kubeletplugin",
		Key: "resource.kubernetes.io/pciBusID", Image: "docker.io/rocm/rocm-terminal:7.0",
		Seen:       regexp.MustCompile(`PCI Bus: (\S+)`),
		NodeLabels: map[string]string{"feature.node.kubernetes.io/amd-gpu": "true"},
		plugin:     "amd/plugin.yaml", driver: "amd/driver",
	}
}

// Plugin is the make's plugin from its vendor's single-file manifest.
func (m Make) Plugin() Plugin {
	return Plugin{DaemonSet: only[*appsv1.DaemonSet](embedded(m.plugin))}
}

// WriteDriverFiles puts everything of the make's driver but a DeviceClass into dir,
// which must not have it yet.
func (m Make) WriteDriverFiles(dir string) error {
	sub, err := fs.Sub(files, m.driver)
	if err != nil {
		panic(err) // the folder's name is a valid path
	}
	if err := os.CopyFS(dir, sub); err != nil {
		return fmt.Errorf("driver manifests: %w", err)
	}
	return nil
}
