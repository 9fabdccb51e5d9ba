package pending

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

const (
	gpu    = "nvidia.com/gpu"
	driver = "gpu.nvidia.com"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func options() Options { return Options{Resource: gpu, Driver: driver, Now: now} }

// What the scheduler says (docs/truth.md, of a cluster with three nodes).
const (
	sayInsufficient = "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	sayCannot       = "0/3 nodes are available: 1 cannot allocate all claims, 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	sayCannot136    = "0/3 nodes are available: 1 cannot allocate all claims, 2 node(s) didn't match Pod's node affinity/selector. still not schedulable, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	sayShut         = "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	sayCPU          = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
)

// ward is a cluster of one GPU node on DRA, gpu-1 with two GPUs, and two CPU nodes; and
// pod team/train, for gpu-1 by its label, that asks for one GPU.
type ward struct {
	cluster.Snapshot
	pod    cluster.Pod
	events []cluster.PodEvent
}

func newWard() *ward {
	w := &ward{}
	w.Identity.ServerVersion = "v1.37.2"
	w.Nodes = []corev1.Node{*node("cpu-1"), *node("cpu-2"), *node("gpu-1")}
	w.Nodes[2].Labels = map[string]string{"pool": "gpu", gate.AllocationLabel: gate.ValueDRA, "eks.amazonaws.com/nodegroup": "gpu-a"}
	w.allocatable(0)
	first, second := slice(1, "gpu-0", "gpu"), slice(1, "gpu-1", "gpu")
	first.Spec.Devices = append(first.Spec.Devices, second.Spec.Devices...)
	w.Slices = []resourcev1.ResourceSlice{first}
	w.Classes = []resourcev1.DeviceClass{class("gpu.nvidia.com", gpu, `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`)}
	w.DaemonSets = []appsv1.DaemonSet{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dra", Name: "driver", UID: "driver"},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"dra-driver-nvidia-gpu-component": "kubelet-plugin"}},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{gate.AllocationLabel: gate.ValueDRA},
				Volumes: []corev1.Volume{{Name: "r", VolumeSource: corev1.VolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/plugins_registry"}}}},
			},
		}},
	}}
	w.Pods = []cluster.Pod{{Namespace: "dra", Name: "driver-x", UID: "driver-x", Node: "gpu-1", Phase: corev1.PodRunning, Ready: true,
		Owner: cluster.Owner{Kind: "DaemonSet", Name: "driver", UID: "driver"}}}
	w.pod = cluster.Pod{
		Namespace: "team", Name: "train", UID: "train", Phase: corev1.PodPending, SchedulerName: corev1.DefaultSchedulerName,
		Created:   now.Add(-10 * time.Minute),
		Requests:  []cluster.Request{{Container: "cuda", Resource: gpu, Count: 1}},
		Placement: &cluster.Placement{NodeSelector: map[string]string{"pool": "gpu"}},
	}
	return w
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.2"}}}
}

func (w *ward) gpuNode() *corev1.Node { return &w.Nodes[2] }

// allocatable is what the plugin offers on the GPU node.
func (w *ward) allocatable(n int64) {
	w.gpuNode().Status.Allocatable = corev1.ResourceList{gpu: *resource.NewQuantity(n, resource.DecimalSI)}
}

func slice(of int64, name, kind string) resourcev1.ResourceSlice {
	return resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-1-" + name},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To("gpu-1"), Pool: resourcev1.ResourcePool{Name: "gpu-1", Generation: 1, ResourceSliceCount: of},
			Devices: []resourcev1.Device{{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}}}},
		},
	}
}

func class(name, carries, expression string) resourcev1.DeviceClass {
	c := resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}}}
	if carries != "" {
		c.Spec.ExtendedResourceName = &carries
	}
	return c
}

// unschedulable is what the scheduler says as a verdict on nodes, schedulerError what it
// says when a whole attempt ends.
func (w *ward) unschedulable(text string) {
	w.pod.Scheduled = &cluster.Condition{Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: text}
}

func (w *ward) schedulerError(text string) {
	w.pod.Scheduled = &cluster.Condition{Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError, Message: text}
}

// hold has a Deployment's pod hold devices by a claim.
func (w *ward) hold(owner string, names ...string) {
	uid := types.UID(fmt.Sprintf("%s-%d", owner, len(w.Pods)))
	w.Pods = append(w.Pods, cluster.Pod{Namespace: "team", Name: string(uid), UID: uid, Node: "gpu-1", Phase: corev1.PodRunning, Ready: true,
		Labels:   map[string]string{"pod-template-hash": "7d"},
		Owner:    cluster.Owner{Kind: "ReplicaSet", Name: owner + "-7d"},
		Requests: []cluster.Request{{Container: "c", Resource: gpu, Count: int64(len(names))}}})
	c := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: string(uid) + "-claim"}}
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: string(uid), UID: uid}}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for _, n := range names {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: "gpu-1", Device: n})
	}
	w.Claims = append(w.Claims, c)
}

// byPlugin has a Job's pod hold GPUs by the plugin.
func (w *ward) byPlugin(owner string, count int64) {
	uid := types.UID(fmt.Sprintf("%s-%d", owner, len(w.Pods)))
	w.Pods = append(w.Pods, cluster.Pod{Namespace: "team", Name: string(uid), UID: uid, Node: "gpu-1", Phase: corev1.PodRunning, Ready: true,
		Owner: cluster.Owner{Kind: "Job", Name: owner}, Requests: []cluster.Request{{Container: "c", Resource: gpu, Count: count}}})
}

// bound binds the pod, served binds it with a generated claim.
func (w *ward) bound() {
	w.pod.Node, w.pod.Placement, w.pod.Scheduled = "gpu-1", nil, nil
}

func (w *ward) served() {
	w.bound()
	w.pod.Bridge = &cluster.Bridge{Claim: "train-extended-resources-x", Mappings: []cluster.Mapping{{Container: "cuda", Resource: gpu, Request: "container-0-request-0"}}}
	w.Claims = append(w.Claims, resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train-extended-resources-x"},
		Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Driver: driver, Pool: "gpu-1", Device: "gpu-0"}}}}},
	})
}

func (w *ward) event(reason, source, message string) {
	w.events = append(w.events, cluster.PodEvent{Type: "Warning", Reason: reason, Source: source, Message: message, Last: now, Count: 3})
}

// withoutDriver takes the driver's pod away, and its slices.
func (w *ward) withoutDriver() {
	w.Pods = w.Pods[1:]
	w.Slices = nil
}

func (w *ward) diagnose() Diagnosis { return Diagnose(&w.Snapshot, &w.pod, w.events, options()) }
