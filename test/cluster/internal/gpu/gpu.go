// Package gpu describes the simulated GPUs of a node.
//
// One set is seen by everything that runs on the node: the device plugin
// advertises it, the DRA driver publishes it, and a workload prints the part of
// it that was injected into its container. The UUID is the only key that all
// three share, which is why it must be stable for a node.
package gpu

import (
	"fmt"

	"github.com/google/uuid"
)

// Paths at which a node shows its GPUs, both on the node and in the containers
// that mount the node's folder.
const (
	// NodeDir is the folder of all that simulates the hardware of a node.
	NodeDir = "/run/nvidia-sim"
	// SetFile holds the node's whole set.
	SetFile = NodeDir + "/gpus.json"
	// FilesDir holds one file a GPU, named <uuid>.json. The file stands for the
	// GPU's device node: whatever injects a GPU mounts its file.
	FilesDir = NodeDir + "/gpus"
	// VisibleDir is where a container finds the files of the GPUs it was given.
	VisibleDir = NodeDir + "/visible"
)

// Defaults of a new set: a driver branch with DRA support and its CUDA version.
const (
	defaultDriverVersion     = "580.95.05"
	defaultCUDADriverVersion = "13.0"
)

// namespace is the root of the name-based UUIDs of this test cluster's GPUs.
const namespace = "6d6f7665-6470-7567-6473-70756c74726f"

// slot is where a board sits in an eight-way server.
type slot struct{ busID, root string }

// slots are the positions in a DGX H100. They are not evenly spaced, so code
// that derives one from another is found out.
var slots = [...]slot{
	{"1b:00.0", "15"}, {"43:00.0", "37"}, {"52:00.0", "48"}, {"61:00.0", "59"},
	{"9d:00.0", "97"}, {"c3:00.0", "b7"}, {"d1:00.0", "c7"}, {"df:00.0", "d7"},
}

// A GPU is one simulated board.
type GPU struct {
	// Index is the position in the order of the management library, from 0.
	Index int `json:"index"`
	// Minor is the number in the device node's name. The DRA driver names its
	// devices by it. It is not the index.
	Minor int `json:"minor"`
	// UUID has the form GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
	UUID string `json:"uuid"`
	// PCIBusID is domain:bus:device.function with a domain of four digits.
	PCIBusID string `json:"pciBusID"`
	// PCIeRoot is the root complex that the GPU hangs on, e.g. pci0000:15.
	PCIeRoot string `json:"pcieRoot"`
	// ProductName, Brand, Architecture, CUDAComputeCapability: see [Model].
	ProductName           string `json:"productName"`
	Brand                 string `json:"brand"`
	Architecture          string `json:"architecture"`
	CUDAComputeCapability string `json:"cudaComputeCapability"`
	// MemoryMiB is the whole of the framebuffer, in MiB.
	MemoryMiB int64 `json:"memoryMiB"`
	// Unhealthy is set to have the device plugin report the GPU as such.
	Unhealthy bool `json:"unhealthy,omitempty"`
}

// DeviceName is the name of the GPU in the DRA driver's pool: gpu-<minor>
// (dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go).
func (g GPU) DeviceName() string { return fmt.Sprintf("gpu-%d", g.Minor) }

// A Set is the GPUs of one node, in the order of their index.
type Set struct {
	// Node is the name of the node that has them.
	Node string `json:"node"`
	// DriverVersion and CUDADriverVersion are as the driver reports them, so
	// not always a semantic version ("580.95.05", "13.0").
	DriverVersion     string `json:"driverVersion"`
	CUDADriverVersion string `json:"cudaDriverVersion"`
	GPUs              []GPU  `json:"gpus"`
}

// NewSet returns n H100s for the node. The same name and number give the same
// set in every process and run.
func NewSet(node string, n int) Set { return NewSetOf(H100(), node, n) }

// NewSetOf is [NewSet] for another model. The UUIDs do not depend on the model.
func NewSetOf(m Model, node string, n int) Set {
	set := Set{
		Node:              node,
		DriverVersion:     defaultDriverVersion,
		CUDADriverVersion: defaultCUDADriverVersion,
		GPUs:              make([]GPU, n),
	}
	for i := range set.GPUs {
		at := slots[i%len(slots)]
		domain := i / len(slots)
		set.GPUs[i] = GPU{
			Index:                 i,
			Minor:                 minor(i, n),
			UUID:                  uuidOf(node, i),
			PCIBusID:              fmt.Sprintf("%04x:%s", domain, at.busID),
			PCIeRoot:              fmt.Sprintf("pci%04x:%s", domain, at.root),
			ProductName:           m.ProductName,
			Brand:                 m.Brand,
			Architecture:          m.Architecture,
			CUDAComputeCapability: m.CUDAComputeCapability,
			MemoryMiB:             m.MemoryMiB,
		}
	}
	return set
}

// minor swaps neighbours, so that whoever takes an index for a minor looks at
// the wrong GPU, as on servers that number their boards in another order.
func minor(index, n int) int {
	if neighbour := index ^ 1; neighbour < n {
		return neighbour
	}
	return index
}

// uuidOf is a name-based UUID (version 5) of the node's name and the index.
func uuidOf(node string, index int) string {
	id := uuid.NewSHA1(uuid.MustParse(namespace), fmt.Appendf(nil, "%s/%d", node, index))
	return "GPU-" + id.String()
}

// UUIDs of the set, in the order of the index.
func (s Set) UUIDs() []string {
	ids := make([]string, len(s.GPUs))
	for i, g := range s.GPUs {
		ids[i] = g.UUID
	}
	return ids
}

// ByUUID finds a GPU of the set.
func (s Set) ByUUID(id string) (GPU, bool) {
	for _, g := range s.GPUs {
		if g.UUID == id {
			return g, true
		}
	}
	return GPU{}, false
}

// ByDeviceName finds a GPU by its name in the DRA driver's pool.
func (s Set) ByDeviceName(name string) (GPU, bool) {
	for _, g := range s.GPUs {
		if g.DeviceName() == name {
			return g, true
		}
	}
	return GPU{}, false
}
