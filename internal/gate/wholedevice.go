package gate

import (
	"fmt"
)

// WholeDevice is how a DRA driver publishes a device as its vendor's plugin advertises
// one: not a part of it, and not one that is set aside for virtual machines.
type WholeDevice struct {
	// Driver is the driver's DRA name, Resource the extended resource that this is for;
	// empty for every one.
	Driver, Resource string
	// Attribute is the driver's attribute that tells such a device, Value what it is
	// then.
	Attribute, Value string
	// Source says where that is to be seen.
	Source string
}

// wholeDevices are the drivers of which it is known.
func wholeDevices() []WholeDevice {
	const amd, intel = "ROCm/k8s-gpu-dra-driver, README", "intel/intel-resource-drivers-for-kubernetes, doc/gpu"
	return []WholeDevice{
		{"gpu.nvidia.com", "", "type", "gpu", "kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go"},
		{"gpu.amd.com", "", "type", "amdgpu", amd},
		// Intel's plugin has one name for each kernel driver, Intel's DRA driver one
		// attribute.
		{"gpu.intel.com", "gpu.intel.com/i915", "driver", "i915", intel},
		{"gpu.intel.com", "gpu.intel.com/xe", "driver", "xe", intel},
		{"hami-core-gpu.project-hami.io", "", "type", "hami-gpu", "Project-HAMi/k8s-dra-driver, DeviceClass of the chart"},
	}
}

// WholeDeviceOf finds how the driver publishes what the plugin advertises as resource;
// false if that is not known.
func WholeDeviceOf(resource, driver string) (WholeDevice, bool) {
	for _, w := range wholeDevices() {
		if w.Driver == driver && (w.Resource == "" || w.Resource == resource) {
			return w, true
		}
	}
	return WholeDevice{}, false
}

// Selector is the CEL expression by which a DeviceClass for the resource selects whole
// devices of the driver, or every device of it if nothing is known of its types: a
// type that was guessed would select none.
func Selector(resource, driver string) string {
	expression := fmt.Sprintf("device.driver == %q", driver)
	if w, known := WholeDeviceOf(resource, driver); known {
		expression += fmt.Sprintf(" && device.attributes[%q].%s == %q", driver, w.Attribute, w.Value)
	}
	return expression
}
