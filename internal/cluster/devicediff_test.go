package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/vendor"
)

// published is a slice of a driver whose devices have these string attributes.
func published(driver string, devices ...map[string]string) []resourcev1.ResourceSlice {
	s := resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: driver, Pool: resourcev1.ResourcePool{Name: "n", ResourceSliceCount: 1}}}
	for i, attributes := range devices {
		d := resourcev1.Device{Name: string(rune('a' + i)), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
		for k, v := range attributes {
			d.Attributes[resourcev1.QualifiedName(k)] = resourcev1.DeviceAttribute{StringValue: &v}
		}
		s.Spec.Devices = append(s.Spec.Devices, d)
	}
	return []resourcev1.ResourceSlice{s}
}

func TestDeviceDiff(t *testing.T) {
	t.Parallel()
	const pci = "resource.kubernetes.io/pciBusID"
	type attributes = map[string]string
	for _, tt := range []struct {
		name      string
		driver    string
		resources []string
		devices   []attributes
		before    []string
		same      bool
		want      DeviceDiff
	}{
		{"NVIDIA by UUID", "gpu.nvidia.com", []string{"nvidia.com/gpu"},
			[]attributes{{"uuid": "GPU-a", pci: "0000:07:00.0"}, {"uuid": "GPU-c"}}, []string{"GPU-a", "GPU-b"}, false,
			DeviceDiff{Join: vendor.JoinOf("gpu.nvidia.com"), Missing: []string{"GPU-b"}, Unexpected: []string{"GPU-c"}, Before: 2, Now: 0}},
		{"AMD by PCI address, whatever its letters and the length of its domain", "gpu.amd.com", []string{"amd.com/gpu"},
			[]attributes{{"type": "amdgpu", pci: "0000:0c:00.0"}, {"type": "amdgpu", "gpu.amd.com/pciAddr": "0000:1c:00.0"}},
			[]string{"0000:0C:00.0", "00000000:1c:00.0"}, true,
			DeviceDiff{Join: vendor.JoinOf("gpu.amd.com"), Before: 2, Now: 2}},
		{"AMD, the standard attribute counts if both are there", "gpu.amd.com", []string{"amd.com/gpu"},
			[]attributes{{"type": "amdgpu", pci: "0000:0c:00.0", "pciAddr": "0000:ff:00.0"}}, []string{"0000:ff:00.0"}, false,
			DeviceDiff{Join: vendor.JoinOf("gpu.amd.com"), Missing: []string{"0000:ff:00.0"}, Unexpected: []string{"0000:0c:00.0"}, Before: 1, Now: 1}},
		{"Intel by number, of those for the resource alone", "gpu.intel.com", []string{"gpu.intel.com/i915", "gpu.intel.com/i915_monitoring"},
			[]attributes{{"driver": "i915", "pciAddress": "0000:0c:00.0"}, {"driver": "xe"}}, []string{"card0"}, true,
			DeviceDiff{Join: vendor.JoinOf("gpu.intel.com"), Before: 1, Now: 1}},
		{"Intel, one is missing", "gpu.intel.com", []string{"gpu.intel.com/xe"},
			[]attributes{{"driver": "xe"}}, []string{"card0", "card1"}, false,
			DeviceDiff{Join: vendor.JoinOf("gpu.intel.com"), Before: 2, Now: 1}},
		{"Gaudi by serial number", "gaudi.intel.com", []string{"habana.ai/gaudi"},
			[]attributes{{"serial": "AN1"}}, []string{"AN1"}, true,
			DeviceDiff{Join: vendor.JoinOf("gaudi.intel.com"), Before: 1, Now: 1}},
		{"TPU by number: one uuid stands for several", "tpu.google.com", []string{"google.com/tpu"},
			[]attributes{{"uuid": "tpu-1"}, {"uuid": "tpu-1"}}, []string{"0", "1"}, true,
			DeviceDiff{Join: vendor.JoinOf("tpu.google.com"), Before: 2, Now: 2}},
		{"a driver that is not known by UUID", "gpu.example.com", []string{"example.com/gpu"},
			[]attributes{{"uuid": "gpu-1"}}, []string{"gpu-2"}, false,
			DeviceDiff{Join: vendor.JoinOf("gpu.nvidia.com"), Missing: []string{"gpu-2"}, Unexpected: []string{"gpu-1"}, Before: 1, Now: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			devices, incomplete := DevicesOf(published(tt.driver, tt.devices...), tt.driver)
			if incomplete != "" {
				t.Fatal(incomplete)
			}
			got := devices.Diff(tt.driver, tt.resources, tt.before)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if got.Same() != tt.same {
				t.Errorf("Same() is %v", got.Same())
			}
		})
	}
}
