package nvml

import (
	"fmt"
	"math"
	"strings"
)

// readMIGMode tells a board that has no such mode from one whose mode is unknown.
func (l *look) readMIGMode(g gpu, d *Device) {
	modes, ok := ask(l, "migMode", "nvmlDeviceGetMigMode", g.migMode)
	if ok {
		d.MIGMode, d.MIGPending = migMode(modes.current), migMode(modes.pending)
		return
	}
	// A library without the function is of a driver from before there was MIG.
	last := len(l.errs) - 1
	if k := l.errs[last].Kind; k == KindNotSupported || k == KindFunctionMissing {
		d.MIGMode, d.MIGPending = MIGUnsupported, MIGUnsupported
		l.errs = l.errs[:last]
	}
}

func migMode(n int) MIGMode {
	if n == 1 {
		return MIGEnabled
	}
	return MIGDisabled
}

// readMIG reads the partitions and returns their handles, in the same order. The
// library's positions may have gaps, which are no errors.
func (l *look) readMIG(g gpu, d *Device) []gpu {
	most, ok := ask(l, "mig", "nvmlDeviceGetMaxMigDeviceCount", g.maxMIG)
	if !ok {
		return nil
	}
	var handles []gpu
	found := []MIGDevice{}
	complete := true
	for i := range most {
		m, ok := ask(l, "mig", "nvmlDeviceGetMigDeviceHandleByIndex", func() (gpu, Code) { return g.mig(i) })
		if !ok {
			if last := len(l.errs) - 1; l.errs[last].Kind == KindNotFound {
				l.errs = l.errs[:last]
			} else {
				complete = false
			}
			continue
		}
		outer := l.take()
		found = append(found, l.partition(m, d))
		handles, l.errs = append(handles, m), outer
	}
	if complete || len(found) > 0 {
		d.MIG = found
	}
	return handles
}

func (l *look) partition(m gpu, parent *Device) MIGDevice {
	d := MIGDevice{ParentUUID: parent.UUID}
	d.UUID, _ = ask(l, "uuid", "nvmlDeviceGetUUID", m.uuid)
	d.GPUInstance = askPtr(l, "gpuInstance", "nvmlDeviceGetGpuInstanceId", m.gpuInstance)
	d.ComputeInstance = askPtr(l, "computeInstance", "nvmlDeviceGetComputeInstanceId", m.computeInstance)
	d.MemoryBytes = askPtr(l, "memoryBytes", "nvmlDeviceGetMemoryInfo", m.memory)
	d.Profile = l.profile(m, parent)
	d.Errors = l.take()
	return d
}

// profile is the last word of the partition's name, such as "NVIDIA H100 80GB HBM3 MIG
// 1g.10gb". Libraries that do not put it there tell the slices, from which all of it but
// the media extension ("+me") follows.
func (l *look) profile(m gpu, parent *Device) string {
	before := len(l.errs)
	if name, ok := ask(l, "profile", "nvmlDeviceGetName", m.name); ok {
		if _, profile, found := strings.Cut(name, " MIG "); found {
			return profile
		}
	}
	size, ok := ask(l, "profile", "nvmlDeviceGetAttributes", m.size)
	if !ok {
		return ""
	}
	if parent.MemoryBytes == nil {
		l.fail(Error{Kind: KindFailed, Part: "profile", Detail: "the GPU's memory is unknown, by which profiles are named"})
		return ""
	}
	l.errs = l.errs[:before]
	return profileOf(size, *parent.MemoryBytes)
}

// profileOf names a partition by its slices and by its share of the GPU's memory: the
// share is whole eighths, the GPU's memory whole GiB, both rounded up, as NVIDIA's tools
// have it. The compute slices are named where they are not all of the GPU instance's.
func profileOf(s migSize, total uint64) string {
	const mib, gib = 1 << 20, 1 << 30
	eighths := math.Ceil(float64(s.memory) * mib / float64(total) * 8)
	gb := math.Round(eighths / 8 * math.Ceil(float64(total)/gib))
	name := fmt.Sprintf("%dg.%dgb", s.gpu, int(gb))
	if s.compute != s.gpu {
		return fmt.Sprintf("%dc.%s", s.compute, name)
	}
	return name
}
