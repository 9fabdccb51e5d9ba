package nodeprobe

import (
	"cmp"
	"maps"
	"slices"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/dramigrate/dramigrate/internal/vendor"
)

// advertised merges the kubelet's entries. It sends one for each device and NUMA
// node (pkg/kubelet/cm/container_manager.go, v1.37.2), so a device on two NUMA
// nodes comes twice.
func advertised(resp *podresources.AllocatableResourcesResponse) map[string][]string {
	return idsByResource(resp.GetDevices())
}

// holders lists who holds what. Containers without a device are left out.
func holders(resp *podresources.ListPodResourcesResponse) []Holder {
	all := []Holder{}
	for _, pod := range resp.GetPodResources() {
		ref := pod.GetNamespace() + "/" + pod.GetName()
		for _, c := range pod.GetContainers() {
			byResource := idsByResource(c.GetDevices())
			for _, resource := range slices.Sorted(maps.Keys(byResource)) {
				if ids := byResource[resource]; len(ids) > 0 {
					all = append(all, Holder{Pod: ref, Container: c.GetName(), Resource: resource, IDs: ids})
				}
			}
			byClaim := devicesByClaim(c.GetDynamicResources())
			for _, claim := range slices.Sorted(maps.Keys(byClaim)) {
				all = append(all, Holder{Pod: ref, Container: c.GetName(), Claim: claim, Devices: byClaim[claim]})
			}
		}
	}
	// The sort is stable: within a container, plugin entries stay before claims.
	slices.SortStableFunc(all, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
	})
	return all
}

func idsByResource(devices []*podresources.ContainerDevices) map[string][]string {
	found := map[string][]string{}
	for _, d := range devices {
		ids := found[d.GetResourceName()]
		for _, id := range d.GetDeviceIds() {
			ids = append(ids, vendor.DeviceID(d.GetResourceName(), id))
		}
		if ids == nil {
			// A resource without a healthy device is not the same as no resource.
			ids = []string{}
		}
		found[d.GetResourceName()] = ids
	}
	for resource, ids := range found {
		slices.Sort(ids)
		found[resource] = slices.Compact(ids)
	}
	return found
}

// devicesByClaim takes driver, pool and device name alone, each triplet once. The
// CDI names beside them are no use: the kubelet adds up those of a driver's
// devices, so that an entry carries those of the entries before it as well
// (v1.37.2, pkg/kubelet/cm/container_manager_linux.go, GetDynamicResources).
func devicesByClaim(claims []*podresources.DynamicResource) map[string][]Device {
	found := map[string][]Device{}
	for _, claim := range claims {
		ref := claim.GetClaimNamespace() + "/" + claim.GetClaimName()
		devices := found[ref]
		for _, d := range claim.GetClaimResources() {
			devices = append(devices, Device{Driver: d.GetDriverName(), Pool: d.GetPoolName(), Name: d.GetDeviceName()})
		}
		found[ref] = devices
	}
	for ref, devices := range found {
		slices.SortFunc(devices, func(a, b Device) int {
			return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
		})
		found[ref] = slices.Compact(devices)
	}
	return found
}
