package main

import (
	"github.com/dramigrate/dramigrate/test/cluster/cluster"
)

// oldKubelet is a kubelet with the feature off by default, which control planes up to
// 1.38 still serve.
const oldKubelet = "v1.35.4"

// A place is one or more nodes on which claims are proven one after the other, in the
// order of the table. Each claim begins by bringing the nodes into the state that it
// needs.
type place string

const (
	// served has the driver and many GPUs, and beside it a node with neither. Its claims
	// are proven side by side, each with names of its own, and none changes the nodes.
	served place = "served"
	// both can have the plugin, the driver, or both at once.
	both place = "both"
	// switched goes from one to the other.
	switched place = "switched"
	// forgetful and stale have a kubelet that forgets a plugin after 20 s.
	forgetful place = "forgetful"
	stale     place = "stale"
	// old has an older kubelet.
	old place = "old"
	// fleet is for DaemonSets.
	fleet place = "fleet"
)

// spare is the second node of the place served.
const spare = "spare"

func (p place) isShared() bool { return p == served }

// nodes all have the label without which the vendors' manifests do not come to them.
func (p place) nodes() []cluster.NodeSpec {
	name := string(p)
	switch p {
	case served:
		return []cluster.NodeSpec{gpuNode(name, 64), gpuNode(spare, 0)}
	case both:
		return []cluster.NodeSpec{gpuNode(name, 2)}
	case forgetful, stale:
		n := gpuNode(name, 2)
		n.Kubelet = cluster.KubeletQuick
		return []cluster.NodeSpec{n}
	case old:
		n := gpuNode(name, 1)
		n.KubeletVersion = oldKubelet
		return []cluster.NodeSpec{n}
	case fleet:
		return []cluster.NodeSpec{gpuNode(name+"-1", 1), gpuNode(name+"-2", 1), gpuNode(name+"-3", 1)}
	default:
		return []cluster.NodeSpec{gpuNode(name, 1)}
	}
}

// node is the name of the place's only, or first, node.
func (p place) node() string { return p.nodes()[0].Name }

func gpuNode(name string, gpus int) cluster.NodeSpec {
	return cluster.NodeSpec{Name: name, GPUs: gpus, Labels: map[string]string{"nvidia.com/gpu.present": "true"}}
}
