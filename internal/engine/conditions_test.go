package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

const (
	testResource = "nvidia.com/gpu"
	testDriver   = "gpu.nvidia.com"
)

// viewWith is a view of one node; edit makes it what a case needs.
func viewWith(edit func(*cluster.NodeView)) cluster.NodeView {
	v := cluster.NodeView{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}}}
	edit(&v)
	return v
}

func pluginPod(name string) cluster.Pod {
	return cluster.Pod{Namespace: "default", Name: name, UID: types.UID(name), Node: "gpu-1", Phase: corev1.PodRunning,
		Requests: []cluster.Request{{Container: "c", Resource: testResource, Count: 1}}}
}

func daemonPod(set string, ready bool) cluster.Pod {
	return cluster.Pod{Namespace: "kube-system", Name: set + "-x", Node: "gpu-1", Phase: corev1.PodRunning, Ready: ready,
		Owner: cluster.Owner{Kind: "DaemonSet", Name: set}}
}

func slice(generation int64, count int64, created time.Time, uuids ...string) resourcev1.ResourceSlice {
	node := "gpu-1"
	s := resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice", CreationTimestamp: metav1.NewTime(created)},
		Spec: resourcev1.ResourceSliceSpec{Driver: testDriver, NodeName: &node,
			Pool: resourcev1.ResourcePool{Name: node, Generation: generation, ResourceSliceCount: count}},
	}
	for i, u := range uuids {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: "gpu-" + string(rune('0'+i)),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &u}}})
	}
	return s
}

func heldClaim() resourcev1.ResourceClaim {
	return resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim"},
		Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "r", Driver: testDriver, Pool: "gpu-1", Device: "gpu-0"}}}}},
	}
}

func offers(v *cluster.NodeView, n string) {
	v.Node.Status.Allocatable = corev1.ResourceList{testResource: resource.MustParse(n)}
}

// TestConditions holds each condition against a state in which it must hold and
// against the states that a naive script takes for it.
func TestConditions(t *testing.T) {
	plugin := []plan.Object{{Kind: "DaemonSet", Namespace: "kube-system", Name: "plugin"}}
	resources := []string{testResource}
	for _, c := range []struct {
		name string
		view cluster.NodeView
		cond func(cluster.NodeView) string
		want string
	}{
		{"nothing is held by the plugin", viewWith(func(*cluster.NodeView) {}),
			func(v cluster.NodeView) string { return pluginHeld(v, resources) }, ""},
		{"a running pod holds a device", viewWith(func(v *cluster.NodeView) { v.Pods = []cluster.Pod{pluginPod("a")} }),
			func(v cluster.NodeView) string { return pluginHeld(v, resources) }, "the device plugin still backs default/a"},
		{"a terminating pod still holds it", viewWith(func(v *cluster.NodeView) {
			p := pluginPod("a")
			p.Terminating = true
			v.Pods = []cluster.Pod{p}
		}), func(v cluster.NodeView) string { return pluginHeld(v, resources) }, "the device plugin still backs default/a (terminating)"},
		{"a static pod counts as well", viewWith(func(v *cluster.NodeView) {
			p := pluginPod("a")
			p.Static = true
			v.Pods = []cluster.Pod{p}
		}), func(v cluster.NodeView) string { return pluginHeld(v, resources) }, "the device plugin still backs default/a"},
		{"a pod that has ended does not", viewWith(func(v *cluster.NodeView) {
			p := pluginPod("a")
			p.Phase = corev1.PodSucceeded
			v.Pods = []cluster.Pod{p}
		}), func(v cluster.NodeView) string { return pluginHeld(v, resources) }, ""},

		{"a claim without a pod still holds a device", viewWith(func(v *cluster.NodeView) { v.Claims = []resourcev1.ResourceClaim{heldClaim()} }),
			func(v cluster.NodeView) string { return claimsHeld(v, testDriver) }, "claims still hold devices: default/claim"},
		{"the claim of another driver is not ours to wait for", viewWith(func(v *cluster.NodeView) { v.Claims = []resourcev1.ResourceClaim{heldClaim()} }),
			func(v cluster.NodeView) string { return claimsHeld(v, "compute-domain.nvidia.com") }, ""},
		{"a terminating pod with a claim needs the driver", viewWith(func(v *cluster.NodeView) {
			p := pluginPod("a")
			p.Terminating, p.Bridge = true, &cluster.Bridge{Claim: "gone"}
			v.Pods = []cluster.Pod{p}
		}), func(v cluster.NodeView) string { return claimsHeld(v, testDriver) }, "still terminating with a claim: default/a (terminating)"},

		{"the key of a plugin that left stays as 0", viewWith(func(v *cluster.NodeView) { offers(v, "0") }),
			func(v cluster.NodeView) string { return stillAllocatable(v, resources) }, ""},
		{"a node that never had the plugin has no key", viewWith(func(*cluster.NodeView) {}),
			func(v cluster.NodeView) string { return stillAllocatable(v, resources) }, ""},
		{"one device is one too many", viewWith(func(v *cluster.NodeView) { offers(v, "1") }),
			func(v cluster.NodeView) string { return stillAllocatable(v, resources) }, "allocatable nvidia.com/gpu is still 1"},

		{"a plugin that came back with fewer devices is a failure", viewWith(func(v *cluster.NodeView) { offers(v, "7") }),
			func(v cluster.NodeView) string { return notAdvertised(v, testResource, 8) }, "allocatable nvidia.com/gpu is 7 of 8"},
		{"more is not", viewWith(func(v *cluster.NodeView) { offers(v, "9") }),
			func(v cluster.NodeView) string { return notAdvertised(v, testResource, 8) }, ""},
		{"0 is no answer even if the former number is not known", viewWith(func(v *cluster.NodeView) { offers(v, "0") }),
			func(v cluster.NodeView) string { return notAdvertised(v, testResource, 0) }, "allocatable nvidia.com/gpu is 0 of 1"},

		{"a device for each that is offered", viewWith(func(v *cluster.NodeView) { offers(v, "2") }),
			func(v cluster.NodeView) string {
				return sharedByReplicas(v, map[string][]string{testResource: {"GPU-a", "GPU-b"}}, resources)
			}, ""},
		{"time-slicing offers each device four times", viewWith(func(v *cluster.NodeView) { offers(v, "8") }),
			func(v cluster.NodeView) string {
				return sharedByReplicas(v, map[string][]string{testResource: {"GPU-a", "GPU-b"}}, resources)
			}, "the plugin offers 8 of nvidia.com/gpu on 2 devices: devices are shared by replicas, which DRA does not do by this name; switch sharing off in the plugin's configuration first"},

		{"the plugin's pod is ready", viewWith(func(v *cluster.NodeView) { v.Pods = []cluster.Pod{daemonPod("plugin", true)} }),
			func(v cluster.NodeView) string { return daemonPodsNotReady(v, plugin) }, ""},
		{"a crash loop is told", viewWith(func(v *cluster.NodeView) {
			p := daemonPod("plugin", false)
			p.Waiting = "CrashLoopBackOff"
			v.Pods = []cluster.Pod{p}
		}), func(v cluster.NodeView) string { return daemonPodsNotReady(v, plugin) }, "pod kube-system/plugin-x is not ready: CrashLoopBackOff"},
		{"an old pod that ends is waited for beside a ready one", viewWith(func(v *cluster.NodeView) {
			old := daemonPod("plugin", true)
			old.Name, old.Terminating = "plugin-old", true
			v.Pods = []cluster.Pod{old, daemonPod("plugin", true)}
		}), func(v cluster.NodeView) string { return daemonPodsNotReady(v, plugin) }, "pod kube-system/plugin-old is still terminating"},
		{"a pod that ends has not landed", viewWith(func(v *cluster.NodeView) {
			p := daemonPod("plugin", true)
			p.Terminating = true
			v.Pods = []cluster.Pod{p}
		}), func(v cluster.NodeView) string { return daemonPodsMissing(v, plugin) }, "daemonset/kube-system/plugin has no pod on the node yet"},
		{"another DaemonSet's pod of the same namespace is no plugin", viewWith(func(v *cluster.NodeView) { v.Pods = []cluster.Pod{daemonPod("dns", true)} }),
			func(v cluster.NodeView) string { return daemonPodsLeft(v, plugin) }, ""},

		{"the GPUs are those from before", viewWith(func(v *cluster.NodeView) {
			v.Slices = []resourcev1.ResourceSlice{slice(1, 1, time.Time{}, "GPU-a", "GPU-b")}
		}), func(v cluster.NodeView) string {
			return devicesNotAs(v, testDriver, resources, []string{"GPU-b", "GPU-a"})
		}, ""},
		{"one is missing and another is there", viewWith(func(v *cluster.NodeView) {
			v.Slices = []resourcev1.ResourceSlice{slice(1, 1, time.Time{}, "GPU-a", "GPU-c")}
		}), func(v cluster.NodeView) string {
			return devicesNotAs(v, testDriver, resources, []string{"GPU-a", "GPU-b"})
		},
			"published devices are not the node's GPUs: missing GPU-b, unexpected GPU-c"},
		{"a pool of which a slice is missing is not used by the scheduler", viewWith(func(v *cluster.NodeView) {
			v.Slices = []resourcev1.ResourceSlice{slice(1, 2, time.Time{}, "GPU-a")}
		}), func(v cluster.NodeView) string { return devicesNotAs(v, testDriver, resources, []string{"GPU-a"}) },
			"pool gpu-1 of driver gpu.nvidia.com has 1 of 2 slices of generation 1"},
		{"a slice without devices is no success, known GPUs or not", viewWith(func(v *cluster.NodeView) {
			v.Slices = []resourcev1.ResourceSlice{slice(1, 1, time.Time{})}
		}), func(v cluster.NodeView) string { return devicesNotAs(v, testDriver, resources, nil) }, "the ResourceSlices of gpu.nvidia.com hold no device"},
		{"no slice yet", viewWith(func(*cluster.NodeView) {}),
			func(v cluster.NodeView) string { return devicesNotAs(v, testDriver, resources, nil) }, "no ResourceSlice of gpu.nvidia.com yet"},
		{"slices outlive the driver", viewWith(func(v *cluster.NodeView) {
			v.Slices = []resourcev1.ResourceSlice{slice(1, 1, time.Time{}, "GPU-a")}
		}), func(v cluster.NodeView) string { return slicesLeft(v, testDriver) }, "1 ResourceSlice(s) of gpu.nvidia.com are still published"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.cond(c.view); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestClosingRestores opens a node that was closed: what others had set stays.
func TestClosingRestores(t *testing.T) {
	foreign := corev1.Taint{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}
	yes := "yes"
	for _, c := range []struct {
		name string
		node corev1.Node
	}{
		{"a plain node", corev1.Node{}},
		{"cordoned by somebody else, with a taint and an annotation of theirs", corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "x"}, Annotations: map[string]string{"karpenter.sh/do-not-disrupt": yes, "note": "z"}},
			Spec:       corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{foreign}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := c.node.DeepCopy()
			prior := priorOf(node, gate.OwnKey())
			closeNode(node, false)
			if why := notClosed(node, false); why != "" {
				t.Fatalf("after closing: %s", why)
			}
			closeNode(node, true)
			if why := notClosed(node, false); why == "" {
				t.Error("with the taint lifted the node counts as closed")
			}
			if why := notClosed(node, true); why != "" {
				t.Errorf("with the taint lifted on purpose: %s", why)
			}
			closeNode(node, false)
			setState(&NodeEdit{Node: node}, gate.OwnKey(), gate.DRA)
			openNode(node, prior)
			setState(&NodeEdit{Node: node, State: &cluster.NodeState{Prior: prior}}, gate.OwnKey(), gate.Plugin)

			if node.Spec.Unschedulable != c.node.Spec.Unschedulable {
				t.Errorf("unschedulable is %v, was %v", node.Spec.Unschedulable, c.node.Spec.Unschedulable)
			}
			if len(node.Spec.Taints) != len(c.node.Spec.Taints) {
				t.Errorf("taints are %v, were %v", node.Spec.Taints, c.node.Spec.Taints)
			}
			for _, k := range []string{"karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/scale-down-disabled", "note"} {
				now, have := node.Annotations[k]
				was, had := c.node.Annotations[k]
				if now != was || have != had {
					t.Errorf("annotation %s is %q (%v), was %q (%v)", k, now, have, was, had)
				}
			}
			if v, ok := node.Labels[gate.AllocationLabel]; ok {
				t.Errorf("label %s=%s is left", gate.AllocationLabel, v)
			}
		})
	}
}

// TestLastRestart tells a kubelet's restart by slices that are younger than the
// opening of the node.
func TestLastRestart(t *testing.T) {
	opened := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	older := viewWith(func(v *cluster.NodeView) {
		v.Slices = []resourcev1.ResourceSlice{slice(1, 1, opened.Add(-time.Minute), "GPU-a")}
	})
	if got := lastRestart(older, testDriver, opened); !got.IsZero() {
		t.Errorf("slices from before the opening: restart at %s, want none", got)
	}
	younger := viewWith(func(v *cluster.NodeView) {
		v.Slices = []resourcev1.ResourceSlice{slice(1, 1, opened.Add(time.Minute), "GPU-a")}
	})
	if got := lastRestart(younger, testDriver, opened); !got.Equal(opened.Add(time.Minute)) {
		t.Errorf("slices from a minute after the opening: restart at %s, want then", got)
	}
}

// TestForgets: kubernetes/kubernetes#141426 is first in 1.38.
func TestForgets(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.36.3": false, "v1.37.2": false, "v1.37.2-eks-1234": false,
		"v1.38.0": true, "v1.38.0-alpha.1": true, "v1.39.1-gke.100": true, "": false, "unknown": false,
	} {
		if got := forgets(version); got != want {
			t.Errorf("forgets(%q) = %v, want %v", version, got, want)
		}
	}
}

// A person is told what to do where a wait took too long, and not where she ended it.
func TestHinted(t *testing.T) {
	late := fmt.Errorf("plugin-on: %w", &DeadlineError{Node: "gpu-7", For: "x", Reason: "y", After: 5*time.Minute - 421})
	if got, want := hinted(late, noPluginHint).Error(), "plugin-on: node/gpu-7: x: not within 5m0s: y; the plugin's pod is ready: delete it"; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want one that begins with %q", got, want)
	}
	if got := hinted(context.Canceled, noPluginHint); got != context.Canceled {
		t.Errorf("%v, want the error as it was", got)
	}
}
