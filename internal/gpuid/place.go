package gpuid

import (
	"fmt"
	"strings"
)

// Place is where on the node's hardware a device is.
type Place struct {
	// GPU is the GPU's UUID, or its PCI address if it has none; empty if unknown.
	GPU string
	// Partition is the UUID of a partition in MIG; empty for a whole GPU, and for a
	// partition without one.
	Partition string
	// Abstract is a partition whose UUID is not known: one that the driver offers to
	// make when a claim asks for it (DynamicMIG), or one with an id of old drivers that
	// the hardware no longer shows. Which part of its GPU it takes is unknown.
	Abstract bool
}

// Overlap says whether two devices share silicon.
type Overlap string

// The answers. Unknown is never to be read as Disjoint.
const (
	Disjoint Overlap = "disjoint"
	Shared   Overlap = "shared"
	Unknown  Overlap = "unknown"
)

// Overlap compares two places on one node. A whole GPU overlaps with each of its
// partitions. A partition without UUID may or may not overlap with another of its GPU.
// GPUs of which one is known by its UUID and one by its address alone may be the same.
func (p Place) Overlap(q Place) Overlap {
	switch {
	case p.Partition != "" && p.Partition == q.Partition:
		return Shared
	case p.Partition != "" && q.Partition != "":
		return Disjoint
	case p.GPU == "" || q.GPU == "":
		return Unknown
	case p.GPU != q.GPU && isAddress(p.GPU) != isAddress(q.GPU):
		return Unknown
	case p.GPU != q.GPU:
		return Disjoint
	case p.whole() || q.whole():
		return Shared
	}
	return Unknown
}

func isAddress(gpu string) bool {
	_, ok := PCI(gpu)
	return ok
}

func (p Place) whole() bool { return p.Partition == "" && !p.Abstract }

// Attributes are those of a DRA device that say where it is; empty if it has none.
type Attributes struct {
	// Type is "gpu", "mig" or "vfio" with NVIDIA's driver.
	Type       string
	UUID       string
	ParentUUID string
	PCIBusID   string
}

// Board is what is known about one GPU of the node.
type Board struct {
	UUID     string
	PCIBusID string
	// Partitions by the pair of instances.
	Partitions []Partition
}

// Partition is one in MIG. The instances are -1 if they are unknown.
type Partition struct {
	UUID                         string
	GPUInstance, ComputeInstance int
}

// Inventory is the hardware of one node, to find ids and attributes in. What is not in
// it, such as when the node could not be looked at, is placed by its own words as far
// as they go.
type Inventory struct {
	byPCI  map[string]string // address → GPU
	parent map[string]string // partition → GPU
	legacy map[string]string // GPU/gi/ci → partition
}

// NewInventory indexes the boards. A board with neither UUID nor address is of no use.
func NewInventory(boards []Board) *Inventory {
	inv := &Inventory{byPCI: map[string]string{}, parent: map[string]string{}, legacy: map[string]string{}}
	for _, b := range boards {
		gpu := b.UUID
		address, ok := PCI(b.PCIBusID)
		if gpu == "" && ok {
			gpu = address
		}
		if ok {
			inv.byPCI[address] = gpu
		}
		for _, p := range b.Partitions {
			if p.UUID == "" {
				continue
			}
			inv.parent[p.UUID] = gpu
			if p.GPUInstance >= 0 && p.ComputeInstance >= 0 {
				inv.legacy[fmt.Sprintf("%s/%d/%d", gpu, p.GPUInstance, p.ComputeInstance)] = p.UUID
			}
		}
	}
	return inv
}

// OfPlugin places a device plugin's id. The error says why it cannot be placed.
func (inv *Inventory) OfPlugin(pluginID string) (Place, error) {
	id := Device(pluginID)
	if m := legacyMIG.FindStringSubmatch(id); m != nil {
		partition, known := inv.legacy[strings.TrimPrefix(id, "MIG-")]
		return Place{GPU: m[1], Partition: partition, Abstract: !known}, nil
	}
	switch {
	case isGPU(id):
		return Place{GPU: id}, nil
	case isMIG(id):
		return Place{GPU: inv.parent[id], Partition: id}, nil
	}
	if address, ok := PCI(id); ok {
		return Place{GPU: inv.ofPCI(address)}, nil
	}
	return Place{}, fmt.Errorf("device %s: the id is neither a UUID nor a PCI address", pluginID)
}

// OfDRA places a DRA device by its attributes. The error says why it cannot be placed.
func (inv *Inventory) OfDRA(a Attributes) (Place, error) {
	parent := a.ParentUUID
	if address, ok := PCI(a.PCIBusID); ok && parent == "" {
		parent = inv.ofPCI(address)
	}
	switch {
	case isGPU(a.UUID):
		return Place{GPU: a.UUID}, nil
	case isMIG(a.UUID):
		if known := inv.parent[a.UUID]; known != "" {
			parent = known
		}
		return Place{GPU: parent, Partition: a.UUID}, nil
	case a.UUID != "" && parent == "":
		// Another vendor's id: only its like can be compared with it.
		return Place{GPU: a.UUID}, nil
	case parent == "":
		return Place{}, fmt.Errorf("a device of type %q has neither UUID, nor its GPU's, nor a PCI address", a.Type)
	}
	return Place{GPU: parent, Abstract: a.Type == "mig"}, nil
}

func (inv *Inventory) ofPCI(address string) string {
	if gpu, known := inv.byPCI[address]; known {
		return gpu
	}
	return address
}
