package deviceplugin

import (
	"sync"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// An inventory is the devices that were there at the start, and their health now.
type inventory struct {
	mu      sync.Mutex
	gpus    []gpu.GPU
	changed chan struct{} // closed, and replaced, at each change
}

func newInventory(set gpu.Set) *inventory {
	return &inventory{
		gpus:    append([]gpu.GPU(nil), set.GPUs...),
		changed: make(chan struct{}),
	}
}

// devices in the form of the API.
func (i *inventory) devices() []*pluginapi.Device {
	list, _ := i.watch()
	return list
}

// watch returns the devices and a channel that is closed when they are outdated.
func (i *inventory) watch() ([]*pluginapi.Device, <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := make([]*pluginapi.Device, len(i.gpus))
	for n, g := range i.gpus {
		health := pluginapi.Healthy
		if g.Unhealthy {
			health = pluginapi.Unhealthy
		}
		list[n] = &pluginapi.Device{ID: g.UUID, Health: health}
	}
	return list, i.changed
}

// has tells whether the plugin advertises the device, healthy or not.
func (i *inventory) has(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, ok := gpu.Set{GPUs: i.gpus}.ByUUID(id)
	return ok
}

// updateHealth takes over the health from set, and tells whether any changed.
// A GPU that is not in set has fallen off the bus: it is unhealthy.
func (i *inventory) updateHealth(set gpu.Set) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	changed := false
	for n := range i.gpus {
		now, present := set.ByUUID(i.gpus[n].UUID)
		unhealthy := !present || now.Unhealthy
		changed = changed || unhealthy != i.gpus[n].Unhealthy
		i.gpus[n].Unhealthy = unhealthy
	}
	if changed {
		close(i.changed)
		i.changed = make(chan struct{})
	}
	return changed
}
