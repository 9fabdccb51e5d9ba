package nvml

import (
	"github.com/dramigrate/dramigrate/internal/gpuid"
)

// look reads one GPU.
type look struct {
	*asker
	lib    *Library
	owners ownerLookup
}

// ask is answer with the usual deadline.
func ask[T any](l *look, part, call string, f func() (T, Code)) (T, bool) {
	return answer(l.asker, part, call, l.lib.o.Timeout, f)
}

// askPtr is ask for a field that is null if it is unknown.
func askPtr[T any](l *look, part, call string, f func() (T, Code)) *T {
	if v, ok := ask(l, part, call, f); ok {
		return &v
	}
	return nil
}

func (l *look) device(index int) Device {
	d := Device{Index: index}
	g, ok := answer(l.asker, "device", "nvmlDeviceGetHandleByIndex", l.lib.o.StartTimeout,
		func() (gpu, Code) { return l.lib.driver.gpu(index) })
	if !ok {
		d.Errors = l.take()
		d.Health.unread(d.Errors[0])
		d.Health.judge(d.Errors)
		return d
	}
	d.UUID, _ = ask(l, "uuid", "nvmlDeviceGetUUID", g.uuid)
	if id, ok := ask(l, "pciBusID", "nvmlDeviceGetPciInfo", g.pciBusID); ok {
		if d.PCIBusID, ok = gpuid.PCI(id); !ok {
			l.fail(Error{Kind: KindFailed, Part: "pciBusID", Call: "nvmlDeviceGetPciInfo", Detail: "not a PCI address: " + id})
		}
	}
	d.Minor = askPtr(l, "minor", "nvmlDeviceGetMinorNumber", g.minor)
	d.Product, _ = ask(l, "product", "nvmlDeviceGetName", g.name)
	if a, ok := ask(l, "architecture", "nvmlDeviceGetArchitecture", g.architecture); ok {
		d.Architecture = architecture(a)
	}
	d.MemoryBytes = askPtr(l, "memoryBytes", "nvmlDeviceGetMemoryInfo", g.memory)
	l.readMIGMode(g, &d)
	l.readHealth(g, &d.Health)
	d.Errors = l.take()
	var partitions []gpu
	if d.MIGMode == MIGEnabled {
		partitions = l.readMIG(g, &d)
	} else if d.MIGMode != "" {
		d.MIG = []MIGDevice{}
	}
	l.readProcesses(g, partitions, &d)
	d.Errors = append(d.Errors, l.take()...)
	d.Health.judge(d.Errors)
	return d
}

// architecture names the library's number for a chip's generation (nvml.h,
// NVML_DEVICE_ARCH_*) as the DRA driver's attribute does.
func architecture(n uint32) string {
	switch n {
	case 2:
		return "Kepler"
	case 3:
		return "Maxwell"
	case 4:
		return "Pascal"
	case 5:
		return "Volta"
	case 6:
		return "Turing"
	case 7:
		return "Ampere"
	case 8:
		return "Ada Lovelace"
	case 9:
		return "Hopper"
	case 10:
		return "Blackwell"
	case 13:
		return "Rubin"
	}
	return "Unknown"
}
