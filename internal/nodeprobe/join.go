package nodeprobe

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/gpuid"
	"github.com/dramigrate/dramigrate/internal/nvml"
)

// Join concludes from what was read: the report's Devices, Leftovers and Verdict are
// made anew, with the API's view if it is not nil. All else of the report stays.
//
// Devices are joined as gpuid does it: by UUID, a partition also by its GPU, and by PCI
// address where there is no UUID.
func Join(r NodeReport, api *APIView) NodeReport {
	if api == nil {
		api = &APIView{}
	}
	r.Devices, r.Leftovers = nil, nil
	r.Unknown = slices.DeleteFunc(slices.Clone(r.Unknown), func(u Unknown) bool { return u.Part == PartDevices })
	j := &join{
		r: &r, api: api,
		pods:    podsOf(api),
		entries: map[string]*entry{},
		slices:  newestSlices(api.Slices, r.Node),
	}
	j.inventory = gpuid.NewInventory(j.boards())
	j.placeHardware()
	j.pluginOffers()
	j.draOffers()
	j.pluginHolds()
	j.draHolds()
	j.processes()
	j.judge()
	return r
}

// join is the state of one Join.
type join struct {
	r         *NodeReport
	api       *APIView
	pods      podNames
	slices    []pool
	inventory *gpuid.Inventory
	entries   map[string]*entry

	plugin, dra side
	// doubts are what keeps a place from being called clean, whatever the mechanisms
	// say.
	doubts []doubt
}

// side is all that is known of one mechanism.
type side struct {
	touches []touch
	// offerGaps and holdGaps say why there may be more offers and holds.
	offerGaps, holdGaps []string
}

func (s *side) gaps() []string { return append(slices.Clone(s.offerGaps), s.holdGaps...) }

// touch is that a mechanism offers a place, or has given it.
type touch struct {
	place gpuid.Place
	held  bool
	// what says it to people, such as "resource nvidia.com/gpu offers it".
	what string
}

type doubt struct {
	place gpuid.Place
	what  string
}

// entry is a device of the report in the making.
type entry struct {
	place gpuid.Place
	state DeviceState
	// vfio is a GPU that is given to a virtual machine, which NVML does not show.
	vfio bool
}

// at finds the entry of a place, or makes it. A place that is not the whole of
// something by its UUID has a name to tell it from others.
func (j *join) at(p gpuid.Place, name string) *entry {
	key := placeKey(p, name)
	e := j.entries[key]
	if e == nil {
		e = &entry{place: p, state: DeviceState{PCIBusID: p.PCIBusID}}
		switch {
		case p.Partition != "":
			e.state.UUID, e.state.ParentUUID, e.state.Type = p.Partition, p.GPU, "mig"
		case p.Abstract:
			e.state.ParentUUID, e.state.Type = p.GPU, "mig"
		default:
			e.state.UUID = p.GPU
			if strings.HasPrefix(p.GPU, "GPU-") {
				e.state.Type = "gpu"
			}
		}
		j.entries[key] = e
	}
	return e
}

func placeKey(p gpuid.Place, name string) string {
	switch {
	case p.Partition != "":
		return "uuid/" + p.Partition
	case p.Abstract:
		return "of/" + p.GPU + "/" + p.PCIBusID + "/" + name
	case p.GPU != "":
		return "uuid/" + p.GPU
	case p.PCIBusID != "":
		return "pci/" + p.PCIBusID
	}
	return "name/" + name
}

// boards are the GPUs by all who know of UUIDs and addresses: the hardware, and beside
// it, or where it could not be looked at, the drivers.
func (j *join) boards() []gpuid.Board {
	var boards []gpuid.Board
	board := func(uuid, address string) *gpuid.Board {
		address, _ = gpuid.PCI(address)
		for i := range boards {
			b := &boards[i]
			if uuid != "" && b.UUID == uuid || address != "" && b.PCIBusID == address && (uuid == "" || b.UUID == "") {
				b.UUID, b.PCIBusID = cmp.Or(b.UUID, uuid), cmp.Or(b.PCIBusID, address)
				return b
			}
		}
		boards = append(boards, gpuid.Board{UUID: uuid, PCIBusID: address})
		return &boards[len(boards)-1]
	}
	if j.r.Hardware != nil {
		for _, d := range j.r.Hardware.Devices {
			if d.UUID == "" && d.PCIBusID == "" {
				continue
			}
			b := board(d.UUID, d.PCIBusID)
			for _, m := range d.MIG {
				p := gpuid.Partition{UUID: m.UUID, GPUInstance: -1, ComputeInstance: -1}
				if m.GPUInstance != nil && m.ComputeInstance != nil {
					p.GPUInstance, p.ComputeInstance = *m.GPUInstance, *m.ComputeInstance
				}
				b.Partitions = append(b.Partitions, p)
			}
		}
	}
	published := func(a gpuid.Attributes) {
		gpu := a.UUID
		if a.Type == "mig" {
			gpu = a.ParentUUID
		}
		if gpu == "" {
			return
		}
		b := board(gpu, a.PCIBusID)
		if a.Type == "mig" && a.UUID != "" && !slices.ContainsFunc(b.Partitions, func(p gpuid.Partition) bool { return p.UUID == a.UUID }) {
			b.Partitions = append(b.Partitions, gpuid.Partition{UUID: a.UUID, GPUInstance: -1, ComputeInstance: -1})
		}
	}
	for _, p := range j.slices {
		for _, d := range p.devices {
			published(d.attributes)
		}
	}
	for _, c := range j.preparedClaims() {
		for _, d := range c.Devices {
			published(d.attributes())
		}
	}
	return boards
}

func (d PreparedDevice) attributes() gpuid.Attributes {
	return gpuid.Attributes{Type: d.Type, UUID: d.UUID, ParentUUID: d.ParentUUID, PCIBusID: d.PCIBusID}
}

// preparedClaims are those of all drivers whose checkpoint was read.
func (j *join) preparedClaims() []PreparedClaim {
	var out []PreparedClaim
	if j.r.Files != nil {
		for _, c := range j.r.Files.DriverCheckpoints {
			out = append(out, c.Claims...)
		}
	}
	return out
}

// placeHardware makes an entry of each GPU and partition that the hardware shows. A GPU
// of which nothing is known but that it is there has an entry too.
func (j *join) placeHardware() {
	if j.r.Hardware == nil {
		return
	}
	for _, d := range j.r.Hardware.Devices {
		e := j.hardware(d)
		e.state.Seen, e.state.Type, e.state.Product = true, "gpu", d.Product
		for _, m := range d.MIG {
			if m.UUID == "" {
				j.doubts = append(j.doubts, doubt{e.place, "a partition of it does not tell its UUID: " + kindsOf(m.Errors)})
				continue
			}
			p := j.place(m.UUID)
			part := j.at(p, m.UUID)
			part.state.Seen, part.state.Type, part.state.Product, part.state.Profile = true, "mig", d.Product, m.Profile
		}
		if d.MIG == nil {
			e.state.Unknown = append(e.state.Unknown, "its partitions: "+kindsOf(d.Errors))
		}
	}
}

func (j *join) hardware(d nvml.Device) *entry {
	switch {
	case d.UUID != "":
		return j.at(j.place(d.UUID), d.UUID)
	case d.PCIBusID != "":
		e := j.at(j.place(d.PCIBusID), d.PCIBusID)
		e.state.Unknown = append(e.state.Unknown, "its UUID: "+kindsOf(d.Errors))
		return e
	}
	e := j.at(gpuid.Place{}, "GPU without a name "+kindsOf(d.Errors))
	e.state.Reasons = append(e.state.Reasons, "the GPU tells neither UUID nor address: "+kindsOf(d.Errors))
	e.state.Verdict = Undecided
	return e
}

// place is that of an id which the inventory knows.
func (j *join) place(id string) gpuid.Place {
	p, err := j.inventory.OfPlugin(id)
	if err != nil {
		return gpuid.Place{GPU: id}
	}
	return p
}

// kindsOf are the kinds of errors, each once.
func kindsOf(errs []nvml.Error) string {
	var kinds []string
	for _, e := range errs {
		if e.Kind != nvml.KindNotSupported && !slices.Contains(kinds, string(e.Kind)) {
			kinds = append(kinds, string(e.Kind))
		}
	}
	if len(kinds) == 0 {
		return "not told"
	}
	return strings.Join(kinds, ", ")
}
