package nodeprobe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/gpuid"
)

// rank orders the verdicts from the best to the worst.
func (v Verdict) rank() int {
	return slices.Index(append([]Verdict{""}, Verdicts()...), v)
}

func worse(a, b Verdict) Verdict {
	if b.rank() > a.rank() {
		return b
	}
	return a
}

// judge gives each device its verdict, and the node the worst of them.
func (j *join) judge() {
	j.plugin.touches, j.dra.touches = unique(j.plugin.touches), unique(j.dra.touches)
	j.unseen()
	r := j.r
	r.Verdict = Clean
	for _, key := range sortedKeys(j.entries) {
		e := j.entries[key]
		j.judgeDevice(e)
		r.Verdict = worse(r.Verdict, e.state.Verdict)
		r.Devices = append(r.Devices, e.state)
	}
	// Where neither side is known in full there may be more than the devices above.
	if p, d := j.plugin.gaps(), j.dra.gaps(); len(p) > 0 && len(d) > 0 {
		r.Unknown = append(r.Unknown, Unknown{PartDevices, strings.Join(append(p, d...), "; ")})
	}
	if len(r.Unknown) > 0 {
		r.Verdict = worse(r.Verdict, Undecided)
	}
	slices.SortStableFunc(r.Devices, func(a, b DeviceState) int {
		return cmp.Or(cmp.Compare(a.gpu(), b.gpu()), cmp.Compare(a.partition(), b.partition()), cmp.Compare(a.name(), b.name()))
	})
}

// gpu, partition and name put the partitions of a GPU behind it.
func (d *DeviceState) gpu() string {
	if d.Type == "mig" {
		return cmp.Or(d.ParentUUID, d.PCIBusID)
	}
	return cmp.Or(d.UUID, d.PCIBusID)
}

func (d *DeviceState) partition() string {
	if d.Type != "mig" {
		return ""
	}
	return "mig " + d.UUID
}

func (d *DeviceState) name() string {
	if len(d.DRADevices) > 0 {
		return d.DRADevices[0].String()
	}
	return ""
}

func unique(list []touch) []touch {
	var out []touch
	seen := map[touch]bool{}
	for _, t := range list {
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

// unseen doubts what is offered or held and is not among the hardware. A GPU that is
// given to a virtual machine is not, nor a partition that is to be made on demand.
func (j *join) unseen() {
	if j.r.Hardware == nil || j.r.Hardware.Devices == nil {
		return
	}
	for _, key := range sortedKeys(j.entries) {
		e := j.entries[key]
		s := &e.state
		ofNVIDIA := strings.HasPrefix(s.UUID, "GPU-") || strings.HasPrefix(s.UUID, "MIG-")
		if !s.Seen && ofNVIDIA && !e.vfio {
			j.doubts = append(j.doubts, doubt{e.place, "the hardware does not show " + s.UUID})
		}
	}
}

// judgeDevice: a device can be in two hands only if both mechanisms have a hand on it,
// so that a gap on one side is of no weight where the other is known to be empty.
func (j *join) judgeDevice(e *entry) {
	s := &e.state
	pluginOn, pluginMaybe := on(j.plugin.touches, e.place)
	draOn, draMaybe := on(j.dra.touches, e.place)
	verdict := worse(Clean, s.Verdict)
	weight := map[string]Verdict{}
	for _, text := range s.Reasons {
		weight[text] = s.Verdict
	}
	reason := func(v Verdict, text string) {
		verdict = worse(verdict, v)
		if _, told := weight[text]; !told {
			s.Reasons = append(s.Reasons, text)
		}
		weight[text] = worse(weight[text], v)
	}
	for i, p := range append(slices.Clone(pluginOn), pluginMaybe...) {
		for k, d := range append(slices.Clone(draOn), draMaybe...) {
			// A partition without UUID only may share with itself, for all that its place
			// says, so that one of the two has to be sure.
			sure := i < len(pluginOn) || k < len(draOn)
			switch both := p.what + ", and " + d.what; p.place.Overlap(d.place) {
			case gpuid.Shared:
				if sure && p.held && d.held {
					reason(DoubleHeld, both)
				} else if sure {
					reason(DoubleAdvertised, both)
				} else {
					reason(Undecided, both)
				}
			case gpuid.Unknown:
				reason(Undecided, both+": whether they are the same silicon is unknown")
			}
		}
	}
	pluginGaps, draGaps := j.plugin.gaps(), j.dra.gaps()
	if len(pluginOn)+len(pluginMaybe)+len(pluginGaps) > 0 && len(draOn)+len(draMaybe)+len(draGaps) > 0 {
		for _, gap := range append(pluginGaps, draGaps...) {
			reason(Undecided, gap)
		}
	}
	for _, d := range j.doubts {
		if d.place.Overlap(e.place) != gpuid.Disjoint {
			reason(Undecided, d.what)
		}
	}
	// What the verdict rests on comes before what is less.
	slices.SortStableFunc(s.Reasons, func(a, b string) int { return cmp.Compare(weight[b].rank(), weight[a].rank()) })
	s.Verdict = verdict
	s.AdvertisedBy = j.advertisedBy(s)
	s.HeldBy = j.heldBy(e)
	finish(s)
}

// on are the touches that share silicon with a place, and those that may.
func on(touches []touch, place gpuid.Place) (sure, maybe []touch) {
	for _, t := range touches {
		switch t.place.Overlap(place) {
		case gpuid.Shared:
			sure = append(sure, t)
		case gpuid.Unknown:
			maybe = append(maybe, t)
		}
	}
	return sure, maybe
}

// advertisedBy is of the device itself, not of what shares silicon with it.
func (j *join) advertisedBy(s *DeviceState) By {
	for _, gap := range append(slices.Clone(j.plugin.offerGaps), j.dra.offerGaps...) {
		s.Unknown = append(s.Unknown, "who else offers it: "+gap)
	}
	plugin, dra := len(s.Resources) > 0, len(s.DRADevices) > 0
	unknown := len(j.plugin.offerGaps)+len(j.dra.offerGaps) > 0
	return by(plugin, dra, unknown)
}

func (j *join) heldBy(e *entry) By {
	s := &e.state
	for _, gap := range append(slices.Clone(j.plugin.holdGaps), j.dra.holdGaps...) {
		s.Unknown = append(s.Unknown, "who else holds it: "+gap)
	}
	has := func(b By) bool { return slices.ContainsFunc(s.Holds, func(h Hold) bool { return h.By == b }) }
	plugin, dra := has(ByPlugin), has(ByDRA)
	if !plugin && !dra && has(ByProcess) {
		return ByProcess
	}
	unknown := len(j.plugin.holdGaps)+len(j.dra.holdGaps) > 0 ||
		slices.ContainsFunc(j.doubts, func(d doubt) bool { return placeKey(d.place, "") == placeKey(e.place, "") })
	return by(plugin, dra, unknown)
}

// by is what is known to be. That there may be more stands in the device's Unknown.
func by(plugin, dra, unknown bool) By {
	switch {
	case plugin && dra:
		return ByBoth
	case plugin:
		return ByPlugin
	case dra:
		return ByDRA
	case unknown:
		return ByUnknown
	}
	return ByNone
}

// finish puts the lists in order, so that one state of a node always reads the same.
func finish(s *DeviceState) {
	slices.Sort(s.Resources)
	slices.SortFunc(s.DRADevices, compareDevices)
	slices.SortFunc(s.Holds, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.PodUID, b.PodUID),
			cmp.Compare(a.Container, b.Container), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.PID, b.PID))
	})
	slices.Sort(s.Unknown)
	s.Unknown = slices.Compact(s.Unknown)
}

// Summary is the verdict in a few words for people, with the objects.
func (d *DeviceState) Summary() string {
	if d.Verdict == Clean {
		return string(Clean)
	}
	return fmt.Sprintf("%s: %s", d.Verdict, strings.Join(d.Reasons, "; "))
}
