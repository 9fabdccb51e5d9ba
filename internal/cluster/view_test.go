package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func node(name string, labels ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	return n
}

// allocated is a claim of namespace team that holds one device.
func allocated(name, driver, pool, device string) resourcev1.ResourceClaim {
	c := claimFor(name)
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: driver, Pool: pool, Device: device}},
	}}
	return c
}

// pinnedTo adds the node selector that the allocator writes for node-local devices.
func pinnedTo(c resourcev1.ResourceClaim, node string) resourcev1.ResourceClaim {
	c.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}
	return c
}

// reserved reserves the claim for the pod with that UID.
func reserved(c resourcev1.ResourceClaim, uid types.UID) resourcev1.ResourceClaim {
	c.Status.ReservedFor = claimFor("", uid).Status.ReservedFor
	return c
}

func TestClaimsOf(t *testing.T) {
	t.Parallel()
	generated := reserved(pinnedTo(allocated("generated", gpuDriver, "n1", "gpu-0"), "n1"), "u1")
	generated.UID = "c1"
	generated.Annotations = map[string]string{"resource.kubernetes.io/extended-resource-claim": "true"}
	s := &Snapshot{
		Nodes: []corev1.Node{node("n1"), node("n2")},
		Pods:  []Pod{{Namespace: "team", Name: "pod-u1", UID: "u1", Node: "n1"}, {Namespace: "team", Name: "pod-u2", UID: "u2", Node: "n2"}},
		Slices: []resourcev1.ResourceSlice{
			slice("n1", "n1", 1, 1, "gpu-0"),
			slice("n2", "rack-7", 1, 1, "gpu-0"),
			slice("", "fabric", 1, 1, "link-0"),
		},
		Claims: []resourcev1.ResourceClaim{
			generated,
			allocated("pod-gone", gpuDriver, "n1", "gpu-1"),
			claimFor("not-allocated", "u1"),
			allocated("other-driver", "compute-domain.nvidia.com", "n1", "channel-0"),
			allocated("odd-pool", gpuDriver, "rack-7", "gpu-0"),
			pinnedTo(allocated("slices-gone", gpuDriver, "rack-9", "gpu-3"), "n2"),
			reserved(allocated("by-pod", gpuDriver, "rack-9", "gpu-4"), "u2"),
			pinnedTo(allocated("pool-named-like-another-node", gpuDriver, "n1", "gpu-0"), "n2"),
			allocated("elsewhere", gpuDriver, "n3", "gpu-0"),
		},
	}
	held := func(v NodeView, drivers ...string) map[string][]HeldDevice {
		out := map[string][]HeldDevice{}
		for _, c := range v.ClaimsOf(drivers...) {
			out[c.Name] = c.Devices
		}
		return out
	}
	views := s.Views("n1", "n2", "n4")
	if len(views) != 2 {
		t.Fatalf("Views made %d views, want 2: a node that does not exist has none", len(views))
	}
	want := map[string][]HeldDevice{
		"generated": {{gpuDriver, "n1", "gpu-0"}},
		"pod-gone":  {{gpuDriver, "n1", "gpu-1"}},
	}
	if diff := cmp.Diff(want, held(views["n1"], gpuDriver)); diff != "" {
		t.Errorf("n1 (-want +got):\n%s", diff)
	}
	want["other-driver"] = []HeldDevice{{"compute-domain.nvidia.com", "n1", "channel-0"}}
	if diff := cmp.Diff(want, held(views["n1"], gpuDriver, "compute-domain.nvidia.com")); diff != "" {
		t.Errorf("n1, both drivers (-want +got):\n%s", diff)
	}
	want = map[string][]HeldDevice{
		"odd-pool":                     {{gpuDriver, "rack-7", "gpu-0"}},
		"slices-gone":                  {{gpuDriver, "rack-9", "gpu-3"}},
		"by-pod":                       {{gpuDriver, "rack-9", "gpu-4"}},
		"pool-named-like-another-node": {{gpuDriver, "n1", "gpu-0"}},
	}
	if diff := cmp.Diff(want, held(views["n2"], gpuDriver)); diff != "" {
		t.Errorf("n2 (-want +got):\n%s", diff)
	}
	uses := views["n1"].ClaimsOf(gpuDriver)
	first := ClaimUse{Namespace: "team", Name: "generated", UID: "c1", Generated: true, Devices: []HeldDevice{{gpuDriver, "n1", "gpu-0"}}, Users: []string{"pod-u1"}}
	if diff := cmp.Diff(first, uses[0]); diff != "" {
		t.Errorf("the generated claim (-want +got):\n%s", diff)
	}
	if uses[1].Generated || uses[1].Users != nil {
		t.Errorf("claim pod-gone: Generated %t, Users %v, want false and none", uses[1].Generated, uses[1].Users)
	}
}

func TestView(t *testing.T) {
	t.Parallel()
	n1 := node("n1")
	n1.Status.Allocatable = corev1.ResourceList{gpuResource: resource.MustParse("0")}
	n1.Status.Capacity = corev1.ResourceList{gpuResource: resource.MustParse("2")}
	s := &Snapshot{
		Nodes: []corev1.Node{n1, node("n2")},
		Pods: []Pod{
			{Namespace: "team", Name: "legacy", UID: "u1", Node: "n1", Requests: []Request{{Container: "c", Resource: gpuResource, Count: 1}}},
			{Namespace: "team", Name: "pending", UID: "u2", Requests: []Request{{Container: "c", Resource: gpuResource, Count: 1}}},
			{Namespace: "team", Name: "idle", UID: "u3", Node: "n1"},
			{Namespace: "team", Name: "other", UID: "u4", Node: "n2", Requests: []Request{{Container: "c", Resource: gpuResource, Count: 1}}},
		},
		Slices: []resourcev1.ResourceSlice{slice("n1", "n1", 1, 1, "gpu-0"), slice("n2", "n2", 1, 1, "gpu-0"), slice("", "fabric", 1, 1, "link-0")},
	}
	v, ok := s.View("n1")
	if !ok {
		t.Fatal("n1 is not seen")
	}
	if _, ok := s.View("n9"); ok {
		t.Error("a node that does not exist is seen")
	}
	if n, present := v.Allocatable(gpuResource); n != 0 || !present {
		t.Errorf("Allocatable = %d, %t, want 0, true: the key stays when the plugin left", n, present)
	}
	if n, present := v.Capacity(gpuResource); n != 2 || !present {
		t.Errorf("Capacity = %d, %t, want 2, true", n, present)
	}
	if n, present := v.Allocatable("amd.com/gpu"); n != 0 || present {
		t.Errorf("Allocatable of an unknown resource = %d, %t, want 0, false", n, present)
	}
	backed := v.PluginBackedPods([]string{gpuResource})
	if len(backed) != 1 || backed[0].Name != "legacy" {
		t.Errorf("PluginBackedPods = %v, want legacy alone", backed)
	}
	if len(v.Slices) != 1 || len(v.SlicesOf(gpuDriver)) != 1 || len(v.SlicesOf("x")) != 0 {
		t.Errorf("slices = %v, want the node's own one", v.Slices)
	}
	if shared := s.SharedSlices(gpuDriver); len(shared) != 1 || shared[0].Spec.Pool.Name != "fabric" {
		t.Errorf("SharedSlices = %v, want that of pool fabric", shared)
	}
}

func TestHasDevices(t *testing.T) {
	t.Parallel()
	capacity := func(n string) corev1.Node {
		out := node("n")
		out.Status.Capacity = corev1.ResourceList{gpuResource: resource.MustParse(n)}
		return out
	}
	marked := node("n")
	marked.Annotations = map[string]string{StateAnnotation: "{}"}
	for _, tt := range []struct {
		name   string
		node   corev1.Node
		slices []resourcev1.ResourceSlice
		want   bool
	}{
		{"a CPU node", node("n"), nil, false},
		{"the plugin advertises", capacity("4"), nil, true},
		{"the key of a plugin that left", capacity("0"), nil, false},
		{"the driver publishes", node("n"), []resourcev1.ResourceSlice{slice("n", "n", 1, 1)}, true},
		{"switched", node("n", AllocationLabel, "switching"), nil, true},
		{"marked", marked, nil, true},
	} {
		v := NodeView{Node: &tt.node, Slices: tt.slices}
		if got := v.HasDevices(gpuResource, gpuDriver); got != tt.want {
			t.Errorf("%s: HasDevices = %t, want %t", tt.name, got, tt.want)
		}
	}
}
