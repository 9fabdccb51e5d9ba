package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const gpuResource = "nvidia.com/gpu"

func claimFor(name string, uids ...types.UID) resourcev1.ResourceClaim {
	c := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	for _, uid := range uids {
		c.Status.ReservedFor = append(c.Status.ReservedFor,
			resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "pod-" + string(uid), UID: uid})
	}
	return c
}

func TestPluginBacked(t *testing.T) {
	t.Parallel()
	asks := func(container string) Request { return Request{Container: container, Resource: gpuResource, Count: 1} }
	mapped := func(containers ...string) *Bridge {
		b := &Bridge{Claim: "generated"}
		for _, c := range containers {
			b.Mappings = append(b.Mappings, Mapping{Container: c, Resource: gpuResource, Request: "r"})
		}
		return b
	}
	for _, tt := range []struct {
		name   string
		pod    Pod
		claims []resourcev1.ResourceClaim
		want   bool
		bridge bool
	}{
		{"bound without a mapping", Pod{Node: "n", Requests: []Request{asks("a")}}, nil, true, false},
		{"not bound", Pod{Requests: []Request{asks("a")}}, nil, false, false},
		{"succeeded", Pod{Node: "n", Phase: corev1.PodSucceeded, Requests: []Request{asks("a")}}, nil, false, false},
		{"failed", Pod{Node: "n", Phase: corev1.PodFailed, Requests: []Request{asks("a")}}, nil, false, false},
		{"terminating still holds it", Pod{Node: "n", Terminating: true, Requests: []Request{asks("a")}}, nil, true, false},
		{"asks for nothing", Pod{Node: "n"}, nil, false, false},
		{"asks for something else", Pod{Node: "n", Requests: []Request{{Container: "a", Resource: "amd.com/gpu", Count: 1}}}, nil, false, false},
		{"asks for none of it", Pod{Node: "n", Requests: []Request{{Container: "a", Resource: gpuResource}}}, nil, false, false},
		{"mapped, claim reserved for it", Pod{UID: "u1", Namespace: "team", Node: "n", Requests: []Request{asks("a")}, Bridge: mapped("a")},
			[]resourcev1.ResourceClaim{claimFor("generated", "u1")}, false, true},
		{"mapped, claim gone", Pod{UID: "u1", Namespace: "team", Node: "n", Requests: []Request{asks("a")}, Bridge: mapped("a")},
			[]resourcev1.ResourceClaim{claimFor("another", "u1")}, true, false},
		{"mapped, claim of another namespace", Pod{UID: "u1", Namespace: "other", Node: "n", Requests: []Request{asks("a")}, Bridge: mapped("a")},
			[]resourcev1.ResourceClaim{claimFor("generated", "u1")}, true, false},
		{"mapped, claim reserved for a pod of the same name", Pod{UID: "u2", Namespace: "team", Node: "n", Requests: []Request{asks("a")}, Bridge: mapped("a")},
			[]resourcev1.ResourceClaim{claimFor("generated", "u1")}, true, false},
		{"one of two containers mapped", Pod{UID: "u1", Namespace: "team", Node: "n", Requests: []Request{asks("a"), asks("b")}, Bridge: mapped("a")},
			[]resourcev1.ResourceClaim{claimFor("generated", "u1")}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := PluginBacked(&tt.pod, []string{gpuResource, "nvidia.com/gpu.shared"}, tt.claims); got != tt.want {
				t.Errorf("PluginBacked = %t, want %t", got, tt.want)
			}
			if got := BridgeBacked(&tt.pod, gpuResource, tt.claims); got != tt.bridge {
				t.Errorf("BridgeBacked = %t, want %t", got, tt.bridge)
			}
		})
	}
}
