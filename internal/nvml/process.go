package nvml

import (
	"cmp"
	"slices"
)

// readProcesses lists who uses the GPU and, in MIG mode, each of its partitions.
//
// In MIG mode the library lists for the whole GPU only if the caller may see all of
// its partitions; it then says which each process is in. Otherwise each partition is
// asked, which tells of those that the caller was given.
func (l *look) readProcesses(g gpu, partitions []gpu, d *Device) {
	before := len(l.errs)
	raw, ok := l.rawProcesses(g)
	if ok {
		l.distribute(raw, d)
		return
	}
	if d.MIGMode != MIGEnabled || l.errs[before].Kind != KindNoPermission {
		return
	}
	// The refusal stays on record: processes outside of the partitions were not seen.
	outer := l.take()
	for i, m := range partitions {
		if raw, ok := l.rawProcesses(m); ok {
			d.MIG[i].Processes = l.named(raw)
		}
		d.MIG[i].Errors = append(d.MIG[i].Errors, l.take()...)
	}
	l.errs = outer
}

// typedProcess is a process and the list in which it was found.
type typedProcess struct {
	rawProcess
	kind ProcessType
}

// rawProcesses are those of all types. One list that is missing makes the answer
// worthless as a proof that nobody uses the device, so there is none then. A device
// that has no such kind of context has no such processes.
func (l *look) rawProcesses(g gpu) ([]typedProcess, bool) {
	var all []typedProcess
	complete := true
	for _, kind := range []struct {
		is   ProcessType
		call string
	}{
		{TypeCompute, "nvmlDeviceGetComputeRunningProcesses"},
		{TypeGraphics, "nvmlDeviceGetGraphicsRunningProcesses"},
		{TypeMPS, "nvmlDeviceGetMPSComputeRunningProcesses"},
	} {
		list, ok := ask(l, "processes", kind.call, func() ([]rawProcess, Code) { return g.processes(kind.is) })
		if !ok {
			last := len(l.errs) - 1
			if l.errs[last].Kind == KindNotSupported && kind.is != TypeCompute {
				l.errs = l.errs[:last]
				continue
			}
			complete = false
		}
		for _, p := range list {
			all = append(all, typedProcess{p, kind.is})
		}
	}
	return all, complete
}

// distribute gives the processes to the partitions that they are in.
func (l *look) distribute(raw []typedProcess, d *Device) {
	rest := raw
	for i := range d.MIG {
		m := &d.MIG[i]
		if m.GPUInstance == nil || m.ComputeInstance == nil {
			continue // its processes stay with the GPU, and that it is unreadable is on record
		}
		var mine, others []typedProcess
		for _, p := range rest {
			if p.gpuInstance == uint32(*m.GPUInstance) && p.computeInstance == uint32(*m.ComputeInstance) {
				mine = append(mine, p)
			} else {
				others = append(others, p)
			}
		}
		m.Processes, rest = l.named(mine), others
	}
	d.Processes = l.named(rest)
}

// named looks up who the processes are, in the order of their PIDs. One that is in
// several lists comes once, with all of its types.
func (l *look) named(raw []typedProcess) []Process {
	out := []Process{}
	for _, p := range raw {
		i := slices.IndexFunc(out, func(q Process) bool { return q.PID == int(p.pid) })
		if i < 0 {
			i = len(out)
			out = append(out, Process{PID: int(p.pid)})
			out[i].Command, out[i].Owner = l.owners(int(p.pid))
		}
		out[i].Types = append(out[i].Types, p.kind)
		if used := p.memory; used != notAvailable && (out[i].MemoryBytes == nil || *out[i].MemoryBytes < used) {
			out[i].MemoryBytes = &used
		}
	}
	slices.SortFunc(out, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	return out
}
