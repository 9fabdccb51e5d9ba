package vendor

// amd names a device by its PCI address: there is no UUID in its driver's devices. A
// plugin that finds a GPU in parts advertises each part but the first by the name of a
// platform device (ROCm/k8s-device-plugin, internal/pkg/amdgpu/amdgpu.go), and the driver
// publishes the parent's address for all of them.
func amd() Vendor {
	return Vendor{
		Name:      "AMD",
		Domain:    "amd.com",
		Resources: []string{"amd.com/"},
		Plugins: []Program{{
			Images:    []string{"rocm/k8s-device-plugin"},
			Labels:    []Label{{"name", "amdgpu-dp-ds"}, {"name", "amd-gpu-dp-ds"}},
			Resources: []string{"amd.com/"},
		}},
		Drivers: []Program{{Images: []string{"rocm/k8s-gpu-dra-driver"}, Drivers: []string{"gpu.amd.com"}}},
		Devices: []Device{{
			Driver: "gpu.amd.com", Class: "gpu.amd.com", Attribute: "type", Value: "amdgpu",
			// pciAddr in releases before it had the standard attribute.
			Join:   Join{Key: PCI, Attributes: []string{pciBusID, "pciAddr"}},
			Source: "ROCm/k8s-gpu-dra-driver, docs/driver-attributes.md",
		}},
		// "<address>-slice-<replica>" (ROCm/k8s-device-plugin,
		// internal/pkg/plugin/timeslice.go).
		IDs:        IDs{What: string(PCI), Replica: "-slice-", Part: "amdgpu_xcp_"},
		NodeLabels: []NodeLabel{{Key: "feature.node.kubernetes.io/amd-gpu", Value: "true"}},
	}
}

// pciBusID is the attribute that Kubernetes defines for the PCI address
// (k8s.io/dynamic-resource-allocation/deviceattribute, v0.37.2).
const pciBusID = "resource.kubernetes.io/pciBusID"
