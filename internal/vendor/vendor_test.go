package vendor

import (
	"slices"
	"strings"
	"testing"
)

func TestSelector(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ resource, driver, want string }{
		{"nvidia.com/gpu", "gpu.nvidia.com", `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`},
		{"amd.com/gpu", "gpu.amd.com", `device.driver == "gpu.amd.com" && device.attributes["gpu.amd.com"].type == "amdgpu"`},
		{"gpu.intel.com/i915", "gpu.intel.com", `device.driver == "gpu.intel.com" && device.attributes["gpu.intel.com"].driver == "i915"`},
		{"gpu.intel.com/xe", "gpu.intel.com", `device.driver == "gpu.intel.com" && device.attributes["gpu.intel.com"].driver == "xe"`},
		{"nvidia.com/gpu", "hami-core-gpu.project-hami.io", `device.driver == "hami-core-gpu.project-hami.io" && device.attributes["hami-core-gpu.project-hami.io"].type == "hami-gpu"`},
		{"habana.ai/gaudi", "gaudi.intel.com", `device.driver == "gaudi.intel.com"`},
		// Nothing is known of these, and nothing is guessed.
		{"intel.com/gpu", "gpu.intel.com", `device.driver == "gpu.intel.com"`},
		{"google.com/tpu", "tpu.google.com", `device.driver == "tpu.google.com"`},
		{"example.com/gpu", "gpu.example.com", `device.driver == "gpu.example.com"`},
	} {
		if got := Selector(tt.resource, tt.driver); got != tt.want {
			t.Errorf("Selector(%s, %s) = %s, want %s", tt.resource, tt.driver, got, tt.want)
		}
	}
}

func TestDeviceID(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ resource, id, want string }{
		{"nvidia.com/gpu", "GPU-5f727037-7cce-5fc4-b316-54a2755e08e7", "GPU-5f727037-7cce-5fc4-b316-54a2755e08e7"},
		{"nvidia.com/gpu.shared", "GPU-5f727037-7cce::3", "GPU-5f727037-7cce"},
		{"nvidia.com/mig-1g.5gb", "MIG-8c0f2b1e", "MIG-8c0f2b1e"},
		{"amd.com/gpu", "0000:0c:00.0", "0000:0c:00.0"},
		{"amd.com/gpu", "0000:0c:00.0-slice-2", "0000:0c:00.0"},
		{"amd.com/gpu", "amdgpu_xcp_3", "amdgpu_xcp_3"},
		{"gpu.intel.com/i915", "card0-0", "card0"},
		{"gpu.intel.com/xe", "card11-3", "card11"},
		{"habana.ai/gaudi", "AN01234567", "AN01234567"},
		{"google.com/tpu", "0", "0"},
		{"example.com/gpu", "gpu-0-1::7", "gpu-0-1"},
		{"example.com/gpu", "gpu-0-1", "gpu-0-1"},
	} {
		if got := DeviceID(tt.resource, tt.id); got != tt.want {
			t.Errorf("DeviceID(%s, %s) = %s, want %s", tt.resource, tt.id, got, tt.want)
		}
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		resource, id string
		want         bool
	}{
		{"amd.com/gpu", "amdgpu_xcp_0", true}, {"amd.com/gpu", "0000:0c:00.0", false},
		{"nvidia.com/mig-1g.5gb", "MIG-8c0f2b1e", false}, {"example.com/gpu", "amdgpu_xcp_0", false},
	} {
		if got := IsPart(tt.resource, tt.id); got != tt.want {
			t.Errorf("IsPart(%s, %s) = %v", tt.resource, tt.id, got)
		}
	}
}

func TestDeviceCounts(t *testing.T) {
	t.Parallel()
	for resource, want := range map[string]bool{
		"gpu.intel.com/i915": true, "gpu.intel.com/xe": true,
		"gpu.intel.com/i915_monitoring": false, "gpu.intel.com/xe_monitoring": false, "gpu.intel.com/monitoring": false,
		"nvidia.com/gpu": true, "example.com/monitoring": true,
	} {
		if got := DeviceCounts(resource); got != want {
			t.Errorf("DeviceCounts(%s) = %v", resource, got)
		}
	}
}

func TestDriverOf(t *testing.T) {
	t.Parallel()
	for resource, want := range map[string]string{
		"nvidia.com/gpu": "gpu.nvidia.com", "nvidia.com/mig-1g.5gb": "gpu.nvidia.com", "amd.com/gpu": "gpu.amd.com",
		"gpu.intel.com/xe": "gpu.intel.com", "habana.ai/gaudi": "gaudi.intel.com", "google.com/tpu": "tpu.google.com",
		"huawei.com/Ascend910": "", "gpu.intel.com/monitoring": "", "example.com/gpu": "", "google.com/other": "",
	} {
		if got, known := DriverOf(resource); got != want || known != (want != "") {
			t.Errorf("DriverOf(%s) = %q, %v", resource, got, known)
		}
	}
}

func TestNormal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key         Key
		value, want string
	}{
		{PCI, "00000000:1B:00.0", "0000:1b:00.0"}, {PCI, "0000:1b:00.0", "0000:1b:00.0"},
		{PCI, "00000001:1b:00.0", "0001:1b:00.0"}, {PCI, "00010000:1b:00.0", "00010000:1b:00.0"},
		{UUID, "GPU-AB", "GPU-AB"}, {Serial, "AN1", "AN1"},
	} {
		if got := tt.key.Normal(tt.value); got != tt.want {
			t.Errorf("%s %s is %s, want %s", tt.key, tt.value, got, tt.want)
		}
	}
}

// Each row has what it needs to be found, and says of what it has not that it is unknown.
func TestRows(t *testing.T) {
	t.Parallel()
	var gates, drivers []string
	for _, v := range All() {
		if v.Name == "" || len(v.Resources)+len(v.Devices) == 0 {
			t.Errorf("row %+v has no name, or neither resources nor devices", v)
		}
		for _, r := range v.Resources {
			if !strings.HasPrefix(r, v.Domain+"/") {
				t.Errorf("%s: resource %s is not of domain %s", v.Name, r, v.Domain)
			}
		}
		for _, d := range v.Devices {
			if (d.Join.Key == NoKey) != (d.Join.Unknown != "") || (d.Join.Key == NoKey) != (len(d.Join.Attributes) == 0) {
				t.Errorf("%s: driver %s is joined by %+v: either a key and its attributes, or what is not known", v.Name, d.Driver, d.Join)
			}
			if d.Source == "" {
				t.Errorf("%s: driver %s has no source", v.Name, d.Driver)
			}
			if slices.Contains(drivers, d.Driver+" "+d.Resource) {
				t.Errorf("driver %s stands there twice for %q", d.Driver, d.Resource)
			}
			drivers = append(drivers, d.Driver+" "+d.Resource)
		}
		if (v.OptOut.Gate == "") != (v.OptOut.Label == "") || v.OptOut.Gate != "" && slices.Contains(gates, v.OptOut.Gate) {
			t.Errorf("%s: opt-out %+v", v.Name, v.OptOut)
		}
		gates = append(gates, v.OptOut.Gate)
	}
}
