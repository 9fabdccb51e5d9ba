package nodeprobe

import (
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/gpuid"
	"github.com/dramigrate/dramigrate/internal/nvml"
)

// mpsServer is the name, as the kernel cuts it, of the process through which the clients
// of the Multi-Process Service reach a GPU. It is in a pod of the plugin's own.
const mpsServer = "nvidia-cuda-mps"

// processes holds the processes on each device against the pods that were given it.
func (j *join) processes() {
	if j.r.Hardware == nil {
		return
	}
	for _, d := range j.r.Hardware.Devices {
		if d.UUID == "" && d.PCIBusID == "" {
			continue
		}
		j.processesOf(j.hardware(d), d.Processes, d.Errors)
		for _, m := range d.MIG {
			if m.UUID != "" {
				j.processesOf(j.at(j.place(m.UUID), m.UUID), m.Processes, m.Errors)
			}
		}
	}
}

func (j *join) processesOf(e *entry, list []nvml.Process, errs []nvml.Error) {
	switch {
	case list == nil:
		why := "its processes: " + kindsOf(errs)
		e.state.Unknown = append(e.state.Unknown, why)
		if j.r.Processes {
			j.doubts = append(j.doubts, doubt{e.place, why})
		}
		return
	case !j.r.Processes:
		if len(list) > 0 {
			e.state.Unknown = append(e.state.Unknown, fmt.Sprintf("whose its %d processes are: that takes --processes", len(list)))
		}
		return
	}
	holds := j.holdsOn(e.place)
	for _, p := range list {
		j.process(e, p, holds)
	}
}

// holdsOn are those on everything that shares silicon with a place.
func (j *join) holdsOn(place gpuid.Place) []Hold {
	var out []Hold
	for _, key := range sortedKeys(j.entries) {
		if e := j.entries[key]; e.place.Overlap(place) != gpuid.Disjoint {
			out = append(out, e.state.Holds...)
		}
	}
	return out
}

// process enters a process that nothing was given to. One that draws, and does not
// compute, is no user of the GPU in the sense of either mechanism.
func (j *join) process(e *entry, p nvml.Process, holds []Hold) {
	h := Hold{By: ByProcess, PodUID: p.Owner.PodUID, Pod: j.pods.name[p.Owner.PodUID], PID: p.PID, Command: p.Command, Witnesses: []Witness{WitnessProcess}}
	computes := slices.Contains(p.Types, nvml.TypeCompute) || slices.Contains(p.Types, nvml.TypeMPS)
	switch {
	case p.Owner.Kind == nvml.OwnerUnknown:
		why := fmt.Sprintf("whose process %d is: %s", p.PID, p.Owner.Detail)
		e.state.Unknown = append(e.state.Unknown, why)
		if computes {
			j.doubts = append(j.doubts, doubt{e.place, why})
		}
		return
	case p.Command == mpsServer:
		return
	case h.PodUID != "" && slices.ContainsFunc(holds, func(q Hold) bool {
		return q.By != ByProcess && (q.PodUID == h.PodUID || h.Pod != "" && q.Pod == h.Pod)
	}):
		return
	case h.PodUID != "" && h.Pod == "" && slices.ContainsFunc(holds, func(q Hold) bool { return q.By != ByProcess && q.PodUID == "" }):
		why := fmt.Sprintf("whether %s was given it: the UID's name is not known, and the holders' UIDs are not", h)
		e.state.Unknown = append(e.state.Unknown, why)
		j.doubts = append(j.doubts, doubt{e.place, why})
		return
	}
	e.state.Holds = append(e.state.Holds, h)
	if computes {
		j.doubts = append(j.doubts, doubt{e.place, h.String() + " uses it without an allocation"})
	}
}
