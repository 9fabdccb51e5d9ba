package cri

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// cdiInjector resolves the CDI devices that the kubelet names for a container.
type cdiInjector struct {
	mu    sync.Mutex // one refresh and injection at a time
	cache *cdi.Cache
}

func newCDIInjector(dirs []string) (*cdiInjector, error) {
	// The folders are read anew for each container instead of being watched: a driver writes a spec
	// just before the container is created, and a watch may be late.
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dirs...), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, fmt.Errorf("CDI cache: %w", err)
	}
	return &cdiInjector{cache: cache}, nil
}

// inject edits the spec for the devices. A device that no CDI spec defines fails the container, as
// with containerd.
func (i *cdiInjector) inject(spec *specs.Spec, devices []*runtimeapi.CDIDevice) error {
	var names []string
	for _, d := range devices {
		if !slices.Contains(names, d.GetName()) {
			names = append(names, d.GetName())
		}
	}
	if len(names) == 0 {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	// A broken spec matters only if a device that is asked for is missing because of it.
	refreshErr := i.cache.Refresh()
	if unresolved, err := i.cache.InjectDevices(spec, names...); err != nil {
		if len(unresolved) > 0 && refreshErr != nil {
			err = errors.Join(err, refreshErr)
		}
		return fmt.Errorf("CDI device injection failed: %w", err)
	}
	if h := spec.Hooks; h != nil {
		return fmt.Errorf("CDI device injection failed: devices %q want hooks, which this runtime does not run", names)
	}
	return nil
}
