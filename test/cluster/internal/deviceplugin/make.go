package deviceplugin

import "github.com/dramigrate/dramigrate/test/cluster/internal/gpu"

// A Make is a vendor's plugin, as far as it differs from the others'.
type Make struct {
	// Command is the program's name.
	Command string
	// Resource is what it advertises, Socket the name of its socket.
	Resource, Socket string
	// ID is what it names a GPU by.
	ID func(gpu.GPU) string
	// Variable names the GPUs to a container; empty if the plugin sets none.
	Variable string
}

// NVIDIA is the plugin that names GPUs by their UUID.
func NVIDIA() Make {
	return Make{
		Command: "nvidia-device-plugin", Resource: ResourceName, Socket: socketName,
		ID: func(g gpu.GPU) string { return g.UUID }, Variable: "NVIDIA_VISIBLE_DEVICES",
	}
}

// AMD is the plugin that names GPUs by their PCI address (ROCm/k8s-device-plugin,
// internal/pkg/amdgpu/amdgpu.go).
func AMD() Make {
	return Make{
		Command: "amdgpu-device-plugin", Resource: "amd.com/gpu", Socket: "amd.com_gpu",
		ID: func(g gpu.GPU) string { return g.PCIBusID },
	}
}
