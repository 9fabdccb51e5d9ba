package pending

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

// The causes below are told by one text of the scheduler, or by none: which of them it
// is, only the state of the cluster says.

// each tries a cause on everything that the pod asks for, if the scheduler speaks of
// devices, or says nothing of nodes at all, and the parts of the Snapshot could be read.
func (e *exam) each(try func(*supply) *Diagnosis, parts ...string) *Diagnosis {
	if !e.waits() || e.verdict.text == "" && e.isYoung() {
		return nil
	}
	if slices.ContainsFunc(append(parts, cluster.PartClasses), func(part string) bool {
		_, unread := e.s.IsUnknown(part)
		return unread
	}) {
		return nil
	}
	for _, w := range e.wishes() {
		if !e.speaksOf(w) {
			continue
		}
		if d := try(e.supply(w)); d != nil {
			if e.verdict.text != "" {
				d.Evidence = append([]string{e.verdict.evidence()}, d.Evidence...)
			}
			return d
		}
	}
	return nil
}

// speaksOf says whether the scheduler's words can be about the wish.
func (e *exam) speaksOf(w wish) bool {
	if len(e.verdict.refusals) == 0 {
		return e.verdict.text == "" || strings.Contains(e.verdict.text, "device class "+w.className)
	}
	return e.verdict.cannotAllocate() && w.class != nil || w.resource != "" && e.verdict.insufficient(w.resource) > 0 ||
		e.verdict.of("cannot fit resource") > 0
}

// noClass is a name that nothing serves.
func noClass(e *exam) *Diagnosis {
	return e.each(func(s *supply) *Diagnosis {
		if s.class != nil {
			return nil
		}
		if s.resource == "" || s.className != "" {
			return &Diagnosis{Cause: NoClass, Certain: true,
				Why:    fmt.Sprintf("%s needs deviceclass/%s, and there is none", s.what, s.className),
				Remedy: "make the DeviceClass, or ask for one of `kubectl get deviceclasses`"}
		}
		onDRA := s.where(func(p *place) bool { return !p.byPlugin() && p.published > 0 })
		byPlugin := s.where((*place).byPlugin)
		if len(onDRA) == 0 && (len(byPlugin) > 0 || len(s.shut) > 0) {
			return nil
		}
		out := &Diagnosis{Cause: NoClass, Certain: true, Remedy: e.mapIt(s.resource, onDRA)}
		out.Why = fmt.Sprintf("no DeviceClass carries %s", s.resource)
		switch {
		case len(onDRA) > 0:
			out.Why += ", and the plugin is off on " + nodes(names(onDRA)) + ", where the driver publishes devices"
			out.Evidence = append(out.Evidence, e.carried())
		default:
			out.Why += ", and no plugin offers it on the nodes that the pod may go to"
			out.Evidence = append(out.Evidence, fmt.Sprintf("%s with the labels that the pod requires, none with allocatable %s above 0",
				words.Count(s.fits, "node"), s.resource), e.carried())
		}
		return out
	})
}

// mapIt is how a class comes to carry the name.
func (e *exam) mapIt(resource string, on []place) string {
	if resource != e.o.Resource {
		return fmt.Sprintf("have the plugin that serves %s run, or make a DeviceClass with extendedResourceName: %s", resource, resource)
	}
	if len(on) > 0 {
		return words.Command("apply", e.poolOf(on[0].node.Name)) + " makes the class, or the driver's chart does"
	}
	return "have the plugin run on such nodes, or move them by `dramigrate apply POOL`, which makes the class"
}

// carried is which names the classes carry.
func (e *exam) carried() string {
	var out []string
	for i := range e.s.Classes {
		c := &e.s.Classes[i]
		if name := c.Spec.ExtendedResourceName; name != nil {
			out = append(out, fmt.Sprintf("%s carries %s", c.Name, *name))
		} else {
			out = append(out, c.Name+" carries none")
		}
	}
	if len(out) == 0 {
		return "there is no DeviceClass"
	}
	return "DeviceClasses: " + few(out)
}

// mappingLost is a class that the scheduler does not know any more for the name: up to
// Kubernetes 1.37 the loss of one of two with it is the loss of both
// (kubernetes/kubernetes#141103).
func mappingLost(e *exam) *Diagnosis {
	if e.verdict.cannotAllocate() || e.s.KeepsMapping() {
		return nil
	}
	return e.each(func(s *supply) *Diagnosis {
		onDRA := s.where(func(p *place) bool { return !p.byPlugin() && p.selected > 0 })
		byPlugin := s.where((*place).byPlugin)
		if s.class == nil || s.resource == "" || len(onDRA) == 0 || e.verdict.insufficient(s.resource) <= len(byPlugin) {
			return nil
		}
		out := &Diagnosis{Cause: MappingLost,
			Why: fmt.Sprintf("deviceclass/%s carries %s, and the scheduler does not use it on %s: it loses the name when one of two classes with it is deleted or changed",
				s.className, s.resource, nodes(names(onDRA))),
			Remedy: fmt.Sprintf("take the name out of the class and put it back, which wakes the pods too: `kubectl patch deviceclass %[1]s --type merge -p '{\"spec\":{\"extendedResourceName\":null}}'`, then the same with %[2]q",
				s.className, s.resource)}
		for i := range s.others {
			out.Evidence = append(out.Evidence, fmt.Sprintf("deviceclass/%s carries it too", s.others[i].Name))
		}
		return out
	}, cluster.PartSlices)
}

// nodesClosed is a pod whose nodes a run, or a person, has closed. The scheduler does
// not speak of devices there: a node that is closed is refused before they are looked at.
func nodesClosed(e *exam) *Diagnosis {
	if !e.waits() || e.verdict.text == "" && e.isYoung() {
		return nil
	}
	for _, w := range e.wishes() {
		s := e.supply(w)
		var mine, lines []string
		switching := ""
		for i := range s.shut {
			if p := &s.shut[i]; p.mends {
				mine = append(mine, p.node.Name)
				lines = append(lines, p.name()+": "+p.shut)
				if strings.HasPrefix(p.shut, "closed") {
					switching = p.node.Name
				}
			}
		}
		if len(s.open) > 0 || len(mine) == 0 {
			continue
		}
		out := &Diagnosis{Cause: NodesClosed, Certain: e.verdict.text != "",
			Why:      fmt.Sprintf("all nodes with %s that it may go to are closed: %s", e.devicesOf(w), nodes(mine)),
			Evidence: untilTold(lines), Remedy: "open them when they are fit for it: `kubectl uncordon " + strings.Join(mine[:min(len(mine), 3)], " ") + "`"}
		if e.verdict.text != "" {
			out.Evidence = append([]string{e.verdict.evidence()}, out.Evidence...)
		}
		if switching != "" {
			pool := e.poolOf(switching)
			out.Remedy = fmt.Sprintf("wait for the run that is at work there: %s; if none is, %s or %s goes on",
				words.Command("status", pool), words.Command("apply", pool), words.Command("rollback", pool))
		}
		return out
	}
	return nil
}

// devicesOf names what a wish is for.
func (e *exam) devicesOf(w wish) string {
	if w.resource != "" {
		return w.resource
	}
	return "devices for " + w.what
}

// classSelectsNothing says in what the nearest device differs from what is wanted.
func classSelectsNothing(e *exam) *Diagnosis {
	return e.each(func(s *supply) *Diagnosis {
		if s.class == nil || s.failure != "" || s.has((*place).byPlugin) || s.any(func(p *place) bool { return p.selected > 0 }) {
			return nil
		}
		nearest, found := differ(s.selector(), s.slices)
		if !found || nearest.elsewhere && s.driverWanted() {
			return nil // what is wanted is not published: the next cause
		}
		return &Diagnosis{Cause: ClassSelectsNothing, Certain: true,
			Why: fmt.Sprintf("%s selects none of the %s that are published where it may go: %s",
				s.selectedBy(), words.Count(devices(s.slices), "device"), strings.Join(nearest.says, "; ")),
			Evidence: []string{nearest.String(), "published: " + few(driversOf(s.slices))},
			Remedy:   fmt.Sprintf("correct the expression: `kubectl get deviceclass %s -o yaml` against `kubectl get resourceslices -o yaml`", s.className)}
	}, cluster.PartSlices)
}

// noSlices is a driver that does not publish what is wanted.
func noSlices(e *exam) *Diagnosis {
	return e.each(func(s *supply) *Diagnosis {
		bare := s.where(func(p *place) bool { return !p.byPlugin() && p.selected == 0 && p.incomplete == "" })
		if s.class == nil || s.failure != "" || s.any(func(p *place) bool { return p.selected > 0 || p.byPlugin() || p.incomplete != "" }) || len(s.shut) > 0 && len(s.open) == 0 {
			return nil
		}
		driver := e.o.Driver
		if n, found := differ(s.selector(), s.slices); found && !n.elsewhere {
			return nil
		}
		out := &Diagnosis{Cause: NoSlices, Certain: len(bare) > 0,
			Why: fmt.Sprintf("no device for %s is published on the nodes that it may go to", s.selectedBy())}
		if len(bare) > 0 {
			out.Why = fmt.Sprintf("driver %s publishes no device on %s, and the plugin offers none there", driver, nodes(names(bare)))
		}
		if got := driversOf(s.slices); len(got) > 0 {
			out.Evidence = append(out.Evidence, "published there: "+few(got))
		}
		var lines []string
		for i := range bare {
			lines = append(lines, bare[i].name()+": "+e.driverOn(bare[i].node.Name))
		}
		out.Evidence = append(out.Evidence, untilTold(lines)...)
		out.Remedy = "see why the driver does not publish: its pod's log; `kubectl get resourceslices` shows what is published"
		if len(bare) > 0 {
			out.Remedy += "; " + words.Command("verify", e.poolOf(bare[0].node.Name)) + " says what else is missing"
		}
		return out
	}, cluster.PartSlices)
}

// slicesIncomplete is a pool of which the scheduler takes no device.
func slicesIncomplete(e *exam) *Diagnosis {
	return e.each(func(s *supply) *Diagnosis {
		part := s.where(func(p *place) bool { return !p.byPlugin() && p.incomplete != "" })
		if s.class == nil || len(part) == 0 || s.any(func(p *place) bool { return p.incomplete == "" && int64(p.free) >= s.need && !p.byPlugin() }) {
			return nil
		}
		out := &Diagnosis{Cause: SlicesIncomplete, Certain: true,
			Why:    "the slices of " + nodes(names(part)) + " are not all there, and the scheduler takes no device of such a pool",
			Remedy: fmt.Sprintf("wait a minute: a driver that starts publishes one slice after the other; then restart its pod on %s", nodes(names(part)))}
		for i := range part {
			out.Evidence = append(out.Evidence, part[i].incomplete)
		}
		out.Evidence = untilTold(out.Evidence)
		return out
	}, cluster.PartSlices)
}

// pluginFull is a node on which both mechanisms offer devices: the plugin's number
// decides, and the pod does not get to the driver's.
func pluginFull(e *exam) *Diagnosis {
	return e.each(func(s *supply) *Diagnosis {
		both := s.where(func(p *place) bool {
			return p.byPlugin() && p.allocatable-p.asked < s.need && int64(p.free) >= s.need
		})
		if s.class == nil || len(both) == 0 {
			return nil
		}
		out := &Diagnosis{Cause: PluginFull, Certain: true,
			Why: fmt.Sprintf("allocatable %s is still above 0 on %s: the plugin is asked there, it is full, and the driver's free devices are passed over",
				s.resource, nodes(names(both))),
			Remedy: fmt.Sprintf("one of the two has to leave: cordon %s, then %s says which should not be there", nodes(names(both)), words.Command("status", e.poolOf(both[0].node.Name)))}
		for i := range both {
			p := &both[i]
			out.Evidence = append(out.Evidence, fmt.Sprintf("%s: allocatable %s is %d, pods ask for %d; %d of %d devices of %s are in no claim",
				p.name(), s.resource, p.allocatable, p.asked, p.free, p.selected, s.selectedBy()))
		}
		out.Evidence = untilTold(out.Evidence)
		return out
	}, cluster.PartSlices, cluster.PartClaims, cluster.PartPods)
}

// tainted is a device that would be free but for its taint.
func tainted(e *exam) *Diagnosis {
	return e.each(func(s *supply) *Diagnosis {
		marked := s.where(func(p *place) bool { return !p.byPlugin() && p.tainted > 0 && int64(p.free+p.tainted) >= s.need })
		if s.class == nil || len(marked) == 0 || len(e.free()) > 0 {
			return nil
		}
		out := &Diagnosis{Cause: Tainted, Certain: true,
			Why:    "the free devices on " + nodes(names(marked)) + " are tainted, and a request by name tolerates no taint",
			Remedy: "find out who has set the taint, and why: the driver, in its slices, for a device that is not healthy; such a device may have to be reset"}
		if s.resource == "" {
			out.Why = "the free devices on " + nodes(names(marked)) + " are tainted, and the request does not tolerate that"
		}
		for i := range marked {
			out.Evidence = append(out.Evidence, fmt.Sprintf("%s: %s with the taint %s", marked[i].name(), words.Count(marked[i].tainted, "free device"), marked[i].taint))
		}
		out.Evidence = untilTold(out.Evidence)
		return out
	}, cluster.PartSlices, cluster.PartClaims)
}

// nodesTooSmall is a pod that asks for more than a node has: a claim's devices are all of
// one node.
func nodesTooSmall(e *exam) *Diagnosis {
	return e.each(func(s *supply) *Diagnosis {
		var most int64
		for i := range s.open {
			most = max(most, s.open[i].has())
		}
		if most == 0 || most >= s.need || s.class == nil && s.resource == "" {
			return nil
		}
		return &Diagnosis{Cause: NodesTooSmall, Certain: true,
			Why:    fmt.Sprintf("it asks for %d of %s, and the largest node that it may go to has %d", s.need, s.what, most),
			Remedy: "ask for fewer devices in one pod, or let it go to larger nodes"}
	}, cluster.PartSlices)
}

// taken says who holds the devices.
func taken(e *exam) *Diagnosis {
	return e.each(func(s *supply) *Diagnosis {
		full := s.where(func(p *place) bool { return p.has() > 0 })
		if len(full) == 0 || len(e.free()) > 0 {
			return nil
		}
		var have, free int64
		for i := range full {
			p := &full[i]
			have += p.has()
			free += p.left()
		}
		out := &Diagnosis{Cause: Taken, Certain: true,
			Why:    fmt.Sprintf("%d of the %d of %s on %s are taken, and it asks for %d", have-free, have, s.what, nodes(names(full)), s.need),
			Remedy: "wait, or end one of those, or add nodes",
		}
		out.Evidence = e.holders(full, s.wish)
		if onDRA := s.where(func(p *place) bool { return !p.byPlugin() && p.selected > 0 }); len(onDRA) > 0 {
			out.Remedy += "; a higher priority does not preempt where DRA hands out the devices"
		}
		if n := len(s.shut); n > 0 {
			out.Evidence = append(out.Evidence, fmt.Sprintf("%s more with devices %s closed or tainted", words.Count(n, "node"), isAre(n)))
		}
		return out
	}, cluster.PartSlices, cluster.PartClaims, cluster.PartPods)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
