//go:build linux && cgo && nvml

package nvml

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// xidEvents is the library's queue of Xid errors. It fills only for GPUs that were
// registered, from then on.
type xidEvents struct {
	set     nvml.EventSet
	handles map[int]nvml.Device
}

func (l *library) watchXIDs(index int) Code {
	if !l.has("nvmlEventSetCreate") || !l.has("nvmlDeviceRegisterEvents") || !l.has("nvmlEventSetWait_v2", "nvmlEventSetWait") {
		return codeFunctionNotFound
	}
	if l.events() == nil {
		set, code := l.EventSetCreate()
		if code != nvml.SUCCESS {
			return Code(code)
		}
		l.mu.Lock()
		l.xids = &xidEvents{set: set, handles: map[int]nvml.Device{}}
		l.mu.Unlock()
	}
	d, code := l.DeviceGetHandleByIndex(index)
	if code == nvml.SUCCESS {
		code = d.RegisterEvents(nvml.EventTypeXidCriticalError, l.events().set)
	}
	if code == nvml.SUCCESS {
		l.mu.Lock()
		l.xids.handles[index] = d
		l.mu.Unlock()
	}
	return Code(code)
}

// events is locked because a call that comes back after its deadline still writes.
func (l *library) events() *xidEvents {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.xids
}

func (l *library) nextXID() (xid, Code) {
	event, code := l.events().set.Wait(0)
	if code != nvml.SUCCESS {
		return xid{}, Code(code)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for index, d := range l.xids.handles {
		if d == event.Device {
			return xid{gpu: index, number: event.EventData}, codeSuccess
		}
	}
	return xid{}, codeNotFound
}
