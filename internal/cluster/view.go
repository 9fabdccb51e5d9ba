package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Node finds a node by name.
func (s *Snapshot) Node(name string) (*corev1.Node, bool) {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i], true
		}
	}
	return nil, false
}

// IsUnknown says why a part could not be read, if so, or that it was not asked for.
func (s *Snapshot) IsUnknown(part string) (reason string, unknown bool) {
	for _, u := range s.Unknown {
		if u.Part == part {
			return u.Reason, true
		}
	}
	if !s.Advice && IsAdvice(part) {
		return "not asked for", true
	}
	return "", false
}

// View gathers what the Snapshot knows about one node; false if there is no such
// node. To see many nodes use Views, which goes through the cluster once.
func (s *Snapshot) View(node string) (NodeView, bool) {
	v, ok := s.Views(node)[node]
	return v, ok
}

// Views gathers what the Snapshot knows about the named nodes, leaving out those
// that do not exist.
func (s *Snapshot) Views(names ...string) map[string]NodeView {
	wanted := make(map[string]bool, len(names))
	for _, n := range names {
		wanted[n] = true
	}
	views := make(map[string]NodeView, len(names))
	for i := range s.Nodes {
		if n := &s.Nodes[i]; wanted[n.Name] {
			views[n.Name] = NodeView{Node: n}
		}
	}
	podNode := map[types.UID]string{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if v, ok := views[p.Node]; ok {
			v.Pods = append(v.Pods, *p)
			views[p.Node] = v
			podNode[p.UID] = p.Node
		}
	}
	poolNodes := map[driverPool]string{}
	for i := range s.Slices {
		sl := &s.Slices[i]
		if sl.Spec.NodeName == nil {
			continue
		}
		if v, ok := views[*sl.Spec.NodeName]; ok {
			v.Slices = append(v.Slices, *sl)
			views[*sl.Spec.NodeName] = v
			poolNodes[driverPool{sl.Spec.Driver, sl.Spec.Pool.Name}] = *sl.Spec.NodeName
		}
	}
	for i := range s.Claims {
		c := &s.Claims[i]
		for _, name := range claimNodes(c, podNode, poolNodes) {
			if v, ok := views[name]; ok {
				v.Claims = append(v.Claims, *c)
				views[name] = v
			}
		}
	}
	return views
}

// claimNodes are the nodes that a claim may hold devices of, each once: that of its
// node selector, those of its pods, and those of its pools.
func claimNodes(c *resourcev1.ResourceClaim, podNode map[types.UID]string, poolNodes map[driverPool]string) []string {
	var out []string
	add := func(name string) {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if name, ok := allocatedNode(c); ok {
		add(name)
	}
	for _, r := range c.Status.ReservedFor {
		add(podNode[r.UID])
	}
	if c.Status.Allocation != nil {
		for _, r := range c.Status.Allocation.Devices.Results {
			add(poolNodes[driverPool{r.Driver, r.Pool}])
			add(r.Pool)
		}
	}
	return out
}

// SharedSlices are the driver's slices that belong to no single node (allNodes, a
// node selector, or a selector per device). The kubelet never removes them, so no
// node's rollback may wait for them to go.
func (s *Snapshot) SharedSlices(driver string) []resourcev1.ResourceSlice {
	var out []resourcev1.ResourceSlice
	for i := range s.Slices {
		if s.Slices[i].Spec.Driver == driver && s.Slices[i].Spec.NodeName == nil {
			out = append(out, s.Slices[i])
		}
	}
	return out
}

// PluginBackedPods are the node's pods that hold one of the resources by the device
// plugin, static and DaemonSet pods included.
func (v NodeView) PluginBackedPods(resources []string) []Pod {
	var out []Pod
	for i := range v.Pods {
		if PluginBacked(&v.Pods[i], resources, v.Claims) {
			out = append(out, v.Pods[i])
		}
	}
	return out
}

// SlicesOf are the node's own slices of a driver.
func (v NodeView) SlicesOf(driver string) []resourcev1.ResourceSlice {
	var out []resourcev1.ResourceSlice
	for i := range v.Slices {
		if v.Slices[i].Spec.Driver == driver {
			out = append(out, v.Slices[i])
		}
	}
	return out
}

// Allocatable is how many of a resource pods can be given; present says whether the
// kubelet reports the key at all. Zero and absent mean the same to the scheduler
// from Kubernetes 1.35 on: the key of a plugin that left stays for ever as "0".
func (v NodeView) Allocatable(resource string) (n int64, present bool) {
	return quantity(v.Node.Status.Allocatable, resource)
}

// Capacity is like Allocatable, but falls to zero only when the kubelet's grace of
// 5 minutes for a plugin that left is over.
func (v NodeView) Capacity(resource string) (n int64, present bool) {
	return quantity(v.Node.Status.Capacity, resource)
}

func quantity(list corev1.ResourceList, resource string) (int64, bool) {
	q, ok := list[corev1.ResourceName(resource)]
	return q.Value(), ok
}
