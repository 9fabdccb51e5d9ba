package deviceplugin

import (
	"sync"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// An inventory is the devices that were there at the start, and their health now.
type inventory struct {
	id      func(gpu.GPU) string
	mu      sync.Mutex
	gpus    []gpu.GPU
	changed chan struct{} // closed, and replaced, at each change
}

func newInventory(set gpu.Set, id func(gpu.GPU) string) *inventory {
	return &inventory{
		id:      id,
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
		list[n] = &pluginapi.Device{ID: i.id(g), Health: health}
	}
	return list, i.changed
}

// find is the GPU that the plugin advertises by the ID, healthy or not.
func (i *inventory) find(id string) (gpu.GPU, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, g := range i.gpus {
		if i.id(g) == id {
			return g, true
		}
	}
	return gpu.GPU{}, false
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
