package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// generatedClaimAnnotation marks a claim that the scheduler made for a pod's
// extended resources (k8s.io/api/resource/v1, ExtendedResourceClaimAnnotation).
const generatedClaimAnnotation = resourcev1.ExtendedResourceClaimAnnotation

// ClaimUse is a claim that holds devices of a node.
type ClaimUse struct {
	Namespace string
	Name      string
	UID       types.UID
	// Generated is true for a claim that the scheduler made for extended resources.
	Generated bool
	// Devices are the devices that the claim holds, of the drivers asked for.
	Devices []HeldDevice
	// Users are the names of the pods that the claim is reserved for, in its
	// namespace. It may be empty: a claim keeps its devices for a moment after its
	// last pod went.
	Users []string
}

// HeldDevice is a device that a claim holds.
type HeldDevice struct {
	Driver string
	Pool   string
	Device string
}

// Ref is the claim as messages name it: "namespace/name".
func (c *ClaimUse) Ref() string { return c.Namespace + "/" + c.Name }

// ClaimsOf are the claims that hold devices of the node from one of the drivers, in
// the order of the view. A claim counts as long as its allocation stands, whether
// or not a pod is left: its devices are prepared and its driver is needed. A claim
// is the node's by the node selector that the allocator wrote, by a pod of the node
// that it is reserved for (so also when the slices are gone), or by its pool.
func (v NodeView) ClaimsOf(drivers ...string) []ClaimUse {
	pools := v.pools()
	var out []ClaimUse
	for i := range v.Claims {
		c := &v.Claims[i]
		if c.Status.Allocation == nil {
			continue
		}
		only, pinned := allocatedNode(c)
		if pinned && only != v.Node.Name {
			continue
		}
		pinned = pinned || v.uses(c)
		var held []HeldDevice
		for _, r := range c.Status.Allocation.Devices.Results {
			if slices.Contains(drivers, r.Driver) && (pinned || pools[driverPool{r.Driver, r.Pool}] || r.Pool == v.Node.Name) {
				held = append(held, HeldDevice{Driver: r.Driver, Pool: r.Pool, Device: r.Device})
			}
		}
		if len(held) > 0 {
			out = append(out, ClaimUse{
				Namespace: c.Namespace,
				Name:      c.Name,
				UID:       c.UID,
				Generated: c.Annotations[generatedClaimAnnotation] == "true",
				Devices:   held,
				Users:     users(c),
			})
		}
	}
	return out
}

// uses says that a claim is reserved for a pod of the node.
func (v NodeView) uses(c *resourcev1.ResourceClaim) bool {
	for i := range v.Pods {
		if reservedFor(c, v.Pods[i].UID) {
			return true
		}
	}
	return false
}

type driverPool struct{ driver, pool string }

// pools are the pools that the node's own slices belong to. Most drivers name the
// pool after the node, but nothing obliges them to.
func (v NodeView) pools() map[driverPool]bool {
	out := map[driverPool]bool{}
	for i := range v.Slices {
		out[driverPool{v.Slices[i].Spec.Driver, v.Slices[i].Spec.Pool.Name}] = true
	}
	return out
}

// allocatedNode is the one node on which an allocation can be used, if there is one
// (structured/internal/stable/allocator_stable.go, createNodeSelector, v0.37.2).
func allocatedNode(c *resourcev1.ResourceClaim) (string, bool) {
	if c.Status.Allocation == nil || c.Status.Allocation.NodeSelector == nil {
		return "", false
	}
	terms := c.Status.Allocation.NodeSelector.NodeSelectorTerms
	if len(terms) != 1 {
		return "", false
	}
	for _, f := range terms[0].MatchFields {
		if f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
			return f.Values[0], true
		}
	}
	return "", false
}

func users(c *resourcev1.ResourceClaim) []string {
	var out []string
	for _, r := range c.Status.ReservedFor {
		if r.APIGroup == corev1.GroupName && r.Resource == "pods" {
			out = append(out, r.Name)
		}
	}
	return out
}
