package checks

import (
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// freeDevices are the devices of each node that no pod has: of those that the plugin
// advertises, or, on a node without, of those that the driver publishes, less those that
// claims hold. What short pods of the tool have is free: a run removes those that another
// has left.
func (in Input) freeDevices() map[string]int64 {
	out := map[string]int64{}
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		count, _ := cluster.NodeView{Node: n}.Allocatable(in.Resource)
		if count > 0 {
			out[n.Name] = count
		}
	}
	published := map[string]int64{}
	nodeOf := map[string]string{} // by the driver's pool
	for i := range in.Snapshot.Slices {
		s := &in.Snapshot.Slices[i]
		if s.Spec.Driver == in.Driver && s.Spec.NodeName != nil && out[*s.Spec.NodeName] == 0 {
			published[*s.Spec.NodeName] += int64(len(s.Spec.Devices))
			nodeOf[s.Spec.Pool.Name] = *s.Spec.NodeName
		}
	}
	maps.Copy(out, published)
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
	for node, n := range in.claimed(nodeOf, helpers) {
		// The claims of pods that ask for the resource are among them.
		taken[node] = max(taken[node], n)
	}
	for node, n := range taken {
		out[node] -= n
	}
	return out
}

// claimed is how many devices of each node claims hold, but for those of the given pods.
// A device that several claims share is one.
func (in Input) claimed(nodeOf map[string]string, but map[types.UID]bool) map[string]int64 {
	type device struct{ pool, name string }
	seen := map[device]bool{}
	out := map[string]int64{}
	for i := range in.Snapshot.Claims {
		c := &in.Snapshot.Claims[i]
		others := func(by resourcev1.ResourceClaimConsumerReference) bool { return !but[by.UID] }
		if c.Status.Allocation == nil || len(c.Status.ReservedFor) > 0 && !slices.ContainsFunc(c.Status.ReservedFor, others) {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			d := device{r.Pool, r.Device}
			if node := nodeOf[r.Pool]; r.Driver == in.Driver && node != "" && !seen[d] && !ptr.Deref(r.AdminAccess, false) {
				seen[d] = true
				out[node]++
			}
		}
	}
	return out
}
