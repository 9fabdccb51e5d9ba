// Package checkpoint reads the checkpoint of the kubelet's device manager, which tells
// what each container was given by a device plugin (pkg/kubelet/cm/devicemanager/checkpoint,
// the same in v1.35.4, v1.36.3 and v1.37.2).
//
// It is a package of its own for the checksum's sake. The kubelet takes it over a dump
// of the data in which the names of package and types stand, so that they have to be
// the kubelet's here.
package checkpoint

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"

	"k8s.io/utils/dump"
)

// DevicesPerNUMA are ids by the number of their NUMA node, which is -1 where there is
// none.
type DevicesPerNUMA map[int64][]string

// PodDevicesEntry is what a container was given of one resource.
type PodDevicesEntry struct {
	PodUID        string
	ContainerName string
	ResourceName  string
	DeviceIDs     DevicesPerNUMA
	AllocResp     []byte
}

type checkpointData struct {
	PodDeviceEntries  []PodDevicesEntry
	RegisteredDevices map[string][]string
}

// Parse reads a checkpoint, and fails if its checksum is not that of its data.
func Parse(file []byte) (entries []PodDevicesEntry, registered map[string][]string, err error) {
	var c struct {
		Data     *checkpointData
		Checksum *uint64
	}
	if err := json.Unmarshal(file, &c); err != nil {
		return nil, nil, err
	}
	if c.Data == nil || c.Checksum == nil {
		return nil, nil, fmt.Errorf("it has no data or no checksum: not the format of a known kubelet")
	}
	if sum := Checksum(*c.Data); sum != *c.Checksum {
		return nil, nil, fmt.Errorf("its checksum is %d, and that of its data %d", *c.Checksum, sum)
	}
	return c.Data.PodDeviceEntries, c.Data.RegisteredDevices, nil
}

// Checksum is the one that the kubelet's checkpoint manager takes of a value
// (pkg/kubelet/checkpointmanager/checksum). Drivers that store their state by the same
// library take it of text.
func Checksum(value any) uint64 {
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, dump.ForHash(value)) // a hash does not fail
	return uint64(sum.Sum32())
}
