package dradriver

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// typeGPU is the attribute "type" of a whole GPU.
const typeGPU = "gpu"

// Devices are the GPUs of the set as NVIDIA's driver publishes them, in the order of
// their index.
func Devices(set gpu.Set) ([]resourceapi.Device, error) { return NVIDIA().devices(set) }

// devices are those of any driver.
func (m Make) devices(set gpu.Set) ([]resourceapi.Device, error) {
	devices := make([]resourceapi.Device, 0, len(set.GPUs))
	for _, g := range set.GPUs {
		d, err := m.device(set, g)
		if err != nil {
			return nil, fmt.Errorf("device %s: %w", m.Name(g), err)
		}
		devices = append(devices, d)
	}
	return devices, nil
}

// pool is what the driver publishes for its node: a pool of the node's name, in
// one slice. Without devices the slice is empty, which tells that the driver runs.
func pool(node string, devices []resourceapi.Device) resourceslice.DriverResources {
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		node: {Slices: []resourceslice.Slice{{Devices: devices}}},
	}}
}

// device describes a GPU with the attributes and the capacity of the vendor's driver.
func (m Make) device(set gpu.Set, g gpu.GPU) (resourceapi.Device, error) {
	attributes, err := m.attributes(set, g)
	if err != nil {
		return resourceapi.Device{}, err
	}
	return resourceapi.Device{
		Name:       m.Name(g),
		Attributes: attributes,
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"memory": {Value: *resource.NewQuantity(g.MemoryMiB<<20, resource.BinarySI)},
		},
	}, nil
}

// nvidiaAttributes are those of dra-driver-nvidia-gpu
// (cmd/gpu-kubelet-plugin/deviceinfo.go).
func nvidiaAttributes(set gpu.Set, g gpu.GPU) (map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, error) {
	attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"type":         text(typeGPU),
		"uuid":         text(g.UUID),
		"productName":  text(g.ProductName),
		"brand":        text(g.Brand),
		"architecture": text(g.Architecture),

		deviceattribute.StandardDeviceAttributePCIBusID: text(g.PCIBusID),
		deviceattribute.StandardDeviceAttributePCIeRoot: text(g.PCIeRoot),
	}
	for name, value := range map[resourceapi.QualifiedName]string{
		"cudaComputeCapability": g.CUDAComputeCapability,
		"driverVersion":         set.DriverVersion,
		"cudaDriverVersion":     set.CUDADriverVersion,
	} {
		// The API takes semantic versions alone; the vendor's are looser
		// ("580.95.05", "9.0").
		v, err := semver.NewVersion(value)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: version %q: %w", name, value, err)
		}
		normal := v.String()
		attributes[name] = resourceapi.DeviceAttribute{VersionValue: &normal}
	}
	return attributes, nil
}

// amdAttributes are those of k8s-gpu-dra-driver for a GPU that is in no parts.
func amdAttributes(set gpu.Set, g gpu.GPU) (map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, error) {
	return map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"type":              text("amdgpu"),
		"productName":       text(g.ProductName),
		"driverVersionFull": text(set.DriverVersion),

		deviceattribute.StandardDeviceAttributePCIBusID: text(g.PCIBusID),
		deviceattribute.StandardDeviceAttributePCIeRoot: text(g.PCIeRoot),
	}, nil
}

func text(s string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &s}
}
