package checks

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

// freeDevices are the devices of each node that no pod has and that the resource may
// come to: of those that the plugin advertises, or, on a node without, of those that the
// driver publishes, less those that claims hold. What short pods of the tool have is free:
// a run removes those that another has left.
func (in Input) freeDevices() map[string]int64 {
	out := map[string]int64{}
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		count, _ := cluster.NodeView{Node: n}.Allocatable(in.Resource)
		if count > 0 {
			out[n.Name] = count
		}
	}
	published := in.publishedWhole(out)
	for _, node := range published {
		out[node]++
	}
	taken := map[string]int64{}
	helpers := map[types.UID]bool{}
	for i := range in.Snapshot.Pods {
		p := &in.Snapshot.Pods[i]
		switch {
		case p.IsHelper():
			helpers[p.UID] = true
		case p.Node != "" && !p.Finished() && out[p.Node] > 0:
			taken[p.Node] += p.DevicesNeeded(in.Resource)
		}
	}
	for node, n := range in.claimed(published, helpers) {
		// The claims of pods that ask for the resource are among them.
		taken[node] = max(taken[node], n)
	}
	for node, n := range taken {
		out[node] -= n
	}
	return out
}

// place is a device by its pool and name.
type place struct{ pool, device string }

// publishedWhole are the nodes of the devices that the driver publishes and that the
// resource may come to: whole ones, where it is known how the driver marks them, without
// a taint. Nodes that have the resource by the plugin are left out.
func (in Input) publishedWhole(byPlugin map[string]int64) map[place]string {
	nodeOf := map[string]string{}
	for i := range in.Snapshot.Slices {
		s := &in.Snapshot.Slices[i].Spec
		if s.Driver == in.Driver && s.NodeName != nil && byPlugin[*s.NodeName] == 0 {
			nodeOf[s.Pool.Name] = *s.NodeName
		}
	}
	whole, known := vendor.DeviceOf(in.Resource, in.Driver)
	known = known && whole.Attribute != ""
	devices, _ := cluster.DevicesOf(in.Snapshot.Slices, in.Driver)
	out := map[place]string{}
	for _, d := range devices {
		if node := nodeOf[d.Pool]; node != "" && !d.Tainted && (!known || d.Kind == whole.Value) {
			out[place{d.Pool, d.Name}] = node
		}
	}
	return out
}

// claimed is how many of the devices of each node claims hold, but for those of the given
// pods. One that several claims share is one. One of which a claim has a share counts: the
// resource comes without a capacity, and then takes all that the device has, if its driver
// does not say otherwise (k8s.io/api/resource/v1, CapacityRequestPolicy.Default, v0.37.2).
func (in Input) claimed(devices map[place]string, but map[types.UID]bool) map[string]int64 {
	seen := map[place]bool{}
	out := map[string]int64{}
	for i := range in.Snapshot.Claims {
		c := &in.Snapshot.Claims[i]
		others := func(by resourcev1.ResourceClaimConsumerReference) bool { return !but[by.UID] }
		if c.Status.Allocation == nil || len(c.Status.ReservedFor) > 0 && !slices.ContainsFunc(c.Status.ReservedFor, others) {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			d := place{r.Pool, r.Device}
			if node := devices[d]; r.Driver == in.Driver && node != "" && !seen[d] && !ptr.Deref(r.AdminAccess, false) {
				seen[d] = true
				out[node]++
			}
		}
	}
	return out
}
