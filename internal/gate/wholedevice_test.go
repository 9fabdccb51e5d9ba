package gate

import "testing"

func TestSelector(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ resource, driver, want string }{
		{"nvidia.com/gpu", "gpu.nvidia.com", `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`},
		{"amd.com/gpu", "gpu.amd.com", `device.driver == "gpu.amd.com" && device.attributes["gpu.amd.com"].type == "amdgpu"`},
		{"gpu.intel.com/i915", "gpu.intel.com", `device.driver == "gpu.intel.com" && device.attributes["gpu.intel.com"].driver == "i915"`},
		{"gpu.intel.com/xe", "gpu.intel.com", `device.driver == "gpu.intel.com" && device.attributes["gpu.intel.com"].driver == "xe"`},
		{"nvidia.com/gpu", "hami-core-gpu.project-hami.io", `device.driver == "hami-core-gpu.project-hami.io" && device.attributes["hami-core-gpu.project-hami.io"].type == "hami-gpu"`},
		// Nothing is known of these, and nothing is guessed.
		{"intel.com/gpu", "gpu.intel.com", `device.driver == "gpu.intel.com"`},
		{"habana.ai/gaudi", "gaudi.intel.com", `device.driver == "gaudi.intel.com"`},
		{"example.com/gpu", "gpu.example.com", `device.driver == "gpu.example.com"`},
	} {
		if got := Selector(tt.resource, tt.driver); got != tt.want {
			t.Errorf("Selector(%s, %s) = %s, want %s", tt.resource, tt.driver, got, tt.want)
		}
	}
}
