package dradriver

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// A Make is a vendor's driver, as far as it differs from the others'.
type Make struct {
	// Command is the program's name.
	Command string
	// Driver is the driver's name in slices, claims and the kubelet's folders.
	Driver string
	// Name is a GPU's name in the driver's pool.
	Name func(gpu.GPU) string
	// attributes are what the driver publishes of a GPU.
	attributes func(gpu.Set, gpu.GPU) (map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, error)
	cdiVendor  string
	// env is what a container with a claim gets in its environment.
	env []string
}

// NVIDIA is the driver gpu.nvidia.com.
func NVIDIA() Make {
	return Make{
		Command: "dra-driver-nvidia-gpu", Driver: DriverName, Name: gpu.GPU.DeviceName, attributes: nvidiaAttributes,
		cdiVendor: "k8s.gpu.nvidia.com",
		// As the vendor's driver does: the legacy runtime hook, if it is in the
		// image's environment, must not add devices of its own.
		env: []string{"NVIDIA_VISIBLE_DEVICES=void"},
	}
}

// firstRender is the number of the first render node of the kernel's DRM.
const firstRender = 128

// AMD is the driver gpu.amd.com, whose devices have no UUID (ROCm/k8s-gpu-dra-driver,
// docs/driver-attributes.md).
func AMD() Make {
	return Make{
		Command: "amd-gpu-kubeletplugin", Driver: "gpu.amd.com",
		Name:       func(g gpu.GPU) string { return fmt.Sprintf("gpu-%d-%d", g.Minor, firstRender+g.Minor) },
		attributes: amdAttributes,
		cdiVendor:  "k8s.gpu.amd.com",
	}
}

// byName finds a GPU by its name in the driver's pool.
func (m Make) byName(set gpu.Set, name string) (gpu.GPU, bool) {
	for _, g := range set.GPUs {
		if m.Name(g) == name {
			return g, true
		}
	}
	return gpu.GPU{}, false
}
