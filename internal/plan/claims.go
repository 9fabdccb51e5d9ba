package plan

import "github.com/dramigrate/dramigrate/internal/cluster"

// Claims is how many ResourceClaim objects a migrated pool adds to the cluster: the
// scheduler makes one for each pod that gets the extended resource by DRA (KEP-5004),
// and they count against quotas of resourceclaims.
type Claims struct {
	// Now is the number of pods that hold the resource by the plugin on the pool's
	// nodes: so many claims there are when all of them run there again.
	Now int `json:"now"`
	// AtMost is the number of devices of the pool that the pods run on then: so many pods
	// of one device fit.
	AtMost int64 `json:"atMost"`
}

// claims counts them; nil if the pods or the claims of the cluster are not known.
func (b *builder) claims() *Claims {
	for _, part := range []string{cluster.PartPods, cluster.PartClaims, cluster.PartSlices} {
		if _, unknown := b.s.IsUnknown(part); unknown {
			return nil
		}
	}
	out := &Claims{}
	takes := b.p.Pool
	if b.p.Into != nil {
		takes = b.p.Into
	}
	for _, v := range b.viewsOf(b.p.Pool) {
		out.Now += len(v.PluginBackedPods([]string{b.in.Resource}))
	}
	for _, v := range b.viewsOf(takes) {
		out.AtMost += b.devicesOf(v)
	}
	return out
}

// devicesOf is the number of devices of a node: what the plugin offers, or else what
// the driver publishes, or else, between the two, what the run that turned the plugin
// off has recorded.
func (b *builder) devicesOf(v cluster.NodeView) int64 {
	if n, _ := v.Allocatable(b.in.Resource); n > 0 {
		return n
	}
	if devices, _ := cluster.DevicesOf(v.SlicesOf(b.in.Driver), b.in.Driver); len(devices) > 0 {
		return int64(len(devices))
	}
	if mark, err := cluster.ParseNodeState(v.Node); err == nil && mark != nil {
		return int64(len(mark.Advertised))
	}
	return 0
}

// viewsOf are the views of a pool's nodes.
func (b *builder) viewsOf(pool *Pool) map[string]cluster.NodeView {
	names := make([]string, len(pool.Nodes))
	for i, n := range pool.Nodes {
		names[i] = n.Name
	}
	return b.s.Views(names...)
}
