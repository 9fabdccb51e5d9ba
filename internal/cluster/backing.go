package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PluginBacked says whether a pod holds, or is about to be given, one of the
// resources by the device plugin: it is bound to a node, has not finished, and one
// of its containers asks for the resource without a valid mapping to a claim. The
// kubelet routes by the same mapping (pkg/kubelet/cm/devicemanager/manager.go,
// v1.37.2), but the scheduler never clears a mapping of a failed attempt: one whose
// claim is gone or reserved for another pod is stale and counts for nothing.
func PluginBacked(p *Pod, resources []string, claims []resourcev1.ResourceClaim) bool {
	if p.Node == "" || p.Finished() {
		return false
	}
	valid := p.Bridge != nil && bridgeHolds(p, claims)
	for _, r := range p.Requests {
		if r.Count > 0 && slices.Contains(resources, string(r.Resource)) && !(valid && p.Bridge.maps(r)) {
			return true
		}
	}
	return false
}

// BridgeBacked says whether DRA serves one of the pod's requests for resource.
func BridgeBacked(p *Pod, resource string, claims []resourcev1.ResourceClaim) bool {
	if p.Bridge == nil || p.Finished() || !bridgeHolds(p, claims) {
		return false
	}
	return slices.ContainsFunc(p.Requests, func(r Request) bool {
		return string(r.Resource) == resource && p.Bridge.maps(r)
	})
}

// Asks says whether a container of the pod asks for the resource.
func (p *Pod) Asks(resource string) bool {
	return slices.ContainsFunc(p.Requests, func(r Request) bool { return string(r.Resource) == resource && r.Count > 0 })
}

func (b *Bridge) maps(r Request) bool {
	return slices.ContainsFunc(b.Mappings, func(m Mapping) bool {
		return m.Container == r.Container && m.Resource == r.Resource
	})
}

func bridgeHolds(p *Pod, claims []resourcev1.ResourceClaim) bool {
	for i := range claims { // by pointer: a cluster has tens of thousands, and they are large
		c := &claims[i]
		if c.Name == p.Bridge.Claim && c.Namespace == p.Namespace && reservedFor(c, p.UID) {
			return true
		}
	}
	return false
}

func reservedFor(c *resourcev1.ResourceClaim, uid types.UID) bool {
	return slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		return r.APIGroup == corev1.GroupName && r.Resource == "pods" && r.UID == uid
	})
}

// DevicesNeeded is how many devices a claim for the pod's requests has: one for
// each that a regular container or a sidecar asks for, and for the init containers
// what the largest of them needs beyond the devices that later containers get
// (pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
// createRequestsAndMappings, v1.37.2).
func (p *Pod) DevicesNeeded(resource string) int64 {
	var total, extra, later int64
	for i := len(p.Requests) - 1; i >= 0; i-- {
		switch r := &p.Requests[i]; {
		case string(r.Resource) != resource:
		case r.Init:
			extra = max(extra, r.Count-later)
		default:
			total += r.Count
			later += r.Count
		}
	}
	return total + extra
}
