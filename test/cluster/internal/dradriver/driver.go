package dradriver

import (
	"context"
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// errPrepareFault is what a driver with [FaultPrepareError] answers.
var errPrepareFault = errors.New("prepare fails on purpose")

// A driver prepares claims on one node. The helper calls it one call at a time.
type driver struct {
	make       Make
	node       string
	set        gpu.Set
	faultFile  string
	checkpoint *checkpoint
	injector   *injector
	// fail ends the whole driver.
	fail context.CancelCauseFunc
}

var _ kubeletplugin.DRAPlugin = &driver{}

// PrepareResourceClaims makes the devices of the claims ready for containers.
func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := make(map[types.UID]kubeletplugin.PrepareResult, len(claims))
	for _, claim := range claims {
		devices, err := d.prepare(claim)
		if err != nil {
			err = fmt.Errorf("prepare claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	fault, err := ReadFault(d.faultFile)
	if err != nil {
		return nil, err
	}
	if fault == FaultPrepareError {
		return nil, errPrepareFault
	}
	// The kubelet asks again, e.g. after its restart; what runs must not change.
	if done, ok := d.checkpoint.Claims[claim.UID]; ok && done.State == prepareCompleted {
		return d.answer(done), nil
	}
	prepared := preparedClaim{Namespace: claim.Namespace, Name: claim.Name, State: prepareStarted}
	var injections []injection
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.make.Driver {
			continue
		}
		g, err := d.resolve(claim.UID, result)
		if err != nil {
			return nil, err
		}
		if fault == FaultWrongDevice {
			if g, err = d.neighbour(g); err != nil {
				return nil, err
			}
		}
		injections = append(injections, injection{device: result.Device, gpu: g})
		prepared.Devices = append(prepared.Devices, preparedDevice{
			Request:   result.Request,
			Device:    result.Device,
			CDIDevice: d.make.deviceID(claim.UID, result.Device),
			Admin:     isAdmin(result),
		})
	}
	// Recorded before anything is made, so that a crash in between leaves a
	// trace that unprepare can follow.
	if err := d.checkpoint.put(claim.UID, prepared); err != nil {
		return nil, err
	}
	if err := d.injector.write(claim.UID, injections); err != nil {
		return nil, err
	}
	prepared.State = prepareCompleted
	if err := d.checkpoint.put(claim.UID, prepared); err != nil {
		return nil, err
	}
	return d.answer(prepared), nil
}

// resolve finds the GPU of an allocation result, and refuses one that is not of
// this node or is held by another claim: the driver is the last that can.
func (d *driver) resolve(claim types.UID, result resourceapi.DeviceRequestAllocationResult) (gpu.GPU, error) {
	if result.Pool != d.node {
		return gpu.GPU{}, fmt.Errorf("device %s/%s is not of this node", result.Pool, result.Device)
	}
	g, ok := d.make.byName(d.set, result.Device)
	if !ok {
		return gpu.GPU{}, fmt.Errorf("device %s/%s is unknown", result.Pool, result.Device)
	}
	if !isAdmin(result) {
		if other, held := d.checkpoint.holder(result.Device, claim); held {
			return gpu.GPU{}, fmt.Errorf("device %s/%s is already prepared for claim %s/%s",
				result.Pool, result.Device, other.Namespace, other.Name)
		}
	}
	return g, nil
}

// neighbour is the GPU with the next index, round the end.
func (d *driver) neighbour(g gpu.GPU) (gpu.GPU, error) {
	if len(d.set.GPUs) < 2 {
		return gpu.GPU{}, fmt.Errorf("fault %s: the node has no second GPU", FaultWrongDevice)
	}
	return d.set.GPUs[(g.Index+1)%len(d.set.GPUs)], nil
}

func (d *driver) answer(claim preparedClaim) []kubeletplugin.Device {
	devices := make([]kubeletplugin.Device, len(claim.Devices))
	for i, p := range claim.Devices {
		devices[i] = kubeletplugin.Device{
			Requests:     []string{p.Request},
			PoolName:     d.node,
			DeviceName:   p.Device,
			CDIDeviceIDs: []string{p.CDIDevice},
		}
	}
	return devices
}

// UnprepareResourceClaims undoes prepare; a claim that was never prepared is done.
func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := make(map[types.UID]error, len(claims))
	for _, claim := range claims {
		err := d.injector.remove(claim.UID)
		if _, known := d.checkpoint.Claims[claim.UID]; known && err == nil {
			err = d.checkpoint.remove(claim.UID)
		}
		if err != nil {
			err = fmt.Errorf("unprepare claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		results[claim.UID] = err
	}
	return results, nil
}

// HandleError logs, and ends the driver if going on makes no sense.
func (d *driver) HandleError(ctx context.Context, err error, msg string) {
	utilruntime.HandleErrorWithContext(ctx, err, msg)
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		d.fail(fmt.Errorf("%s: %w", msg, err))
	}
}

// WatchHealthStatus is not offered: like the vendor's driver with its defaults.
func (d *driver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

func isAdmin(result resourceapi.DeviceRequestAllocationResult) bool {
	return result.AdminAccess != nil && *result.AdminAccess
}
