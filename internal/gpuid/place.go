package gpuid

import (
	"fmt"
	"strings"
)

// Place is where on the node's hardware a device is.
type Place struct {
	// GPU and PCIBusID are the GPU's UUID and PCI address. Either is empty if unknown.
	GPU      string
	PCIBusID string
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
func (p Place) Overlap(q Place) Overlap {
	switch {
	case p.Partition != "" && p.Partition == q.Partition:
		return Shared
	case p.Partition != "" && q.Partition != "":
		return Disjoint
	}
	one := p.oneGPU(q)
	if one == Shared && !p.whole() && !q.whole() {
		return Unknown
	}
	return one
}

// oneGPU compares the GPUs, by address where one has no UUID.
func (p Place) oneGPU(q Place) Overlap {
	a, b := p.GPU, q.GPU
	if a == "" || b == "" {
		a, b = p.PCIBusID, q.PCIBusID
	}
	switch {
	case a == "" || b == "":
		return Unknown
	case a == b:
		return Shared
	}
	return Disjoint
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
	UUID       string
	PCIBusID   string
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
	byPCI  map[string]Place  // address → GPU
	byUUID map[string]Place  // GPU's or partition's UUID → its place
	legacy map[string]string // GPU/gi/ci → partition
}

// NewInventory indexes the boards.
func NewInventory(boards []Board) *Inventory {
	inv := &Inventory{byPCI: map[string]Place{}, byUUID: map[string]Place{}, legacy: map[string]string{}}
	for _, b := range boards {
		address, _ := PCI(b.PCIBusID)
		gpu := Place{GPU: b.UUID, PCIBusID: address}
		if address != "" {
			inv.byPCI[address] = gpu
		}
		if b.UUID != "" {
			inv.byUUID[b.UUID] = gpu
		}
		for _, p := range b.Partitions {
			if p.UUID == "" {
				continue
			}
			inv.byUUID[p.UUID] = Place{GPU: b.UUID, PCIBusID: address, Partition: p.UUID}
			if b.UUID != "" && p.GPUInstance >= 0 && p.ComputeInstance >= 0 {
				inv.legacy[fmt.Sprintf("%s/%d/%d", b.UUID, p.GPUInstance, p.ComputeInstance)] = p.UUID
			}
		}
	}
	return inv
}

// OfPlugin places a device plugin's id. The error says why it cannot be placed.
func (inv *Inventory) OfPlugin(pluginID string) (Place, error) {
	id := Device(pluginID)
	if m := legacyMIG.FindStringSubmatch(id); m != nil {
		place := inv.byID(m[1])
		partition, known := inv.legacy[strings.TrimPrefix(id, "MIG-")]
		place.Partition, place.Abstract = partition, !known
		return place, nil
	}
	if isGPU(id) || isMIG(id) {
		return inv.byID(id), nil
	}
	if address, ok := PCI(id); ok {
		return inv.address(address), nil
	}
	return Place{}, fmt.Errorf("device %s: the id is neither a UUID nor a PCI address", pluginID)
}

// OfDRA places a DRA device by its attributes. The error says why it cannot be placed.
func (inv *Inventory) OfDRA(a Attributes) (Place, error) {
	var place Place
	switch {
	case a.UUID != "":
		place = inv.byID(a.UUID)
	case a.ParentUUID != "":
		place = inv.byID(a.ParentUUID)
	}
	if place.GPU == "" {
		place.GPU = a.ParentUUID
	}
	if address, ok := PCI(a.PCIBusID); ok && place.PCIBusID == "" {
		at := inv.address(address)
		place.PCIBusID = at.PCIBusID
		if place.GPU == "" {
			place.GPU = at.GPU
		}
	}
	if place == (Place{}) {
		return Place{}, fmt.Errorf("a device of type %q has neither UUID, nor its GPU's, nor a PCI address", a.Type)
	}
	place.Abstract = a.Type == "mig" && place.Partition == ""
	return place, nil
}

// byID takes a UUID that the hardware does not show by its form. One of another
// vendor's form is that of a whole device.
func (inv *Inventory) byID(uuid string) Place {
	if place, known := inv.byUUID[uuid]; known {
		return place
	}
	if isMIG(uuid) {
		return Place{Partition: uuid}
	}
	return Place{GPU: uuid}
}

func (inv *Inventory) address(address string) Place {
	if place, known := inv.byPCI[address]; known {
		return place
	}
	return Place{PCIBusID: address}
}
