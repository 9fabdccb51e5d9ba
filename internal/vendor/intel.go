package vendor

import "regexp"

// intelMonitoring stands for access to all GPUs of a node.
var intelMonitoring = regexp.MustCompile(`(^|_)monitoring$`)

// intelGPU has one resource for each kernel driver, and one DRA driver for both.
func intelGPU() Vendor {
	const driver, source = "gpu.intel.com", "intel/intel-resource-drivers-for-kubernetes, doc/gpu"
	// The plugin names a GPU by its card and a number of the share, "card0-0"
	// (intel/intel-device-plugins-for-kubernetes, cmd/gpu_plugin/gpu_plugin.go); the
	// driver has no attribute with the card.
	join := Join{Unknown: "the plugin names GPUs by their card (card0) and the driver by their PCI address"}
	return Vendor{
		Name:      "Intel GPU",
		Domain:    "gpu.intel.com",
		Resources: []string{"gpu.intel.com/"},
		Unbridged: intelMonitoring,
		Names:     []Name{{intelMonitoring, "it stands for access to all GPUs of a node, which is no device"}},
		Plugins: []Program{{
			Images: []string{"intel/intel-gpu-plugin"}, Labels: []Label{{"app", "intel-gpu-plugin"}},
			Resources: []string{"gpu.intel.com/"},
		}},
		Drivers: []Program{{
			Images:  []string{"intel/intel-gpu-resource-driver"},
			Labels:  []Label{{"app", "intel-gpu-resource-driver-kubelet-plugin"}},
			Drivers: []string{driver},
		}},
		Devices: []Device{
			{Driver: driver, Resource: "gpu.intel.com/i915", Class: driver, Attribute: "driver", Value: "i915", Join: join, Source: source},
			{Driver: driver, Resource: "gpu.intel.com/xe", Class: driver, Attribute: "driver", Value: "xe", Join: join, Source: source},
		},
		IDs:        IDs{What: "card", Replica: "-", Always: true},
		NodeLabels: []NodeLabel{{Key: "intel.feature.node.kubernetes.io/gpu", Value: "true"}},
	}
}

// gaudi has two names for one resource: the plugin's, and that of the driver's class.
func gaudi() Vendor {
	const driver = "gaudi.intel.com"
	return Vendor{
		Name:      "Intel Gaudi",
		Domain:    "habana.ai",
		Resources: []string{"habana.ai/gaudi"},
		Plugins: []Program{{
			Labels: []Label{{"name", "habanalabs-device-plugin-ds"}}, Resources: []string{"habana.ai/gaudi"},
		}},
		Drivers: []Program{{
			Images:  []string{"intel/intel-gaudi-resource-driver"},
			Labels:  []Label{{"app", "intel-gaudi-resource-driver-kubelet-plugin"}},
			Drivers: []string{driver},
		}},
		Devices: []Device{{
			Driver: driver, Class: driver, Only: true,
			Join:   Join{Key: Serial, Attributes: []string{"serial"}},
			Source: "intel/intel-resource-drivers-for-kubernetes, deployments/gaudi/base/device-class.yaml",
		}},
		// HabanaAI's plugin takes the serial number that the management library gives.
		IDs:        IDs{What: string(Serial)},
		NodeLabels: []NodeLabel{{Key: "intel.feature.node.kubernetes.io/gaudi", Value: "true"}},
	}
}
