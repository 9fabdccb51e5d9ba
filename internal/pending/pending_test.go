package pending

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// Texts are those of docs/truth.md, "What a pod says".
func TestDiagnose(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		set    func(*ward)
		cause  Cause
		likely bool
		// says has to be in the sentence, the evidence or the remedy.
		says []string
	}{
		{"no class carries the name, the plugin is off", func(w *ward) {
			w.Classes = nil
			w.unschedulable(sayInsufficient)
		}, NoClass, false, []string{"no DeviceClass carries nvidia.com/gpu", "node/gpu-1", "dramigrate apply gpu-a", sayInsufficient}},
		{"no class carries the name, nothing offers it", func(w *ward) {
			w.Classes = []resourcev1.DeviceClass{class("mig", "", `device.driver == "gpu.nvidia.com"`)}
			w.withoutDriver()
			w.unschedulable(sayInsufficient)
		}, NoClass, false, []string{"no plugin offers it", "mig carries none"}},
		{"an implicit name of a class that does not exist", func(w *ward) {
			w.pod.Requests[0].Resource = cluster.ImplicitResourcePrefix + "none"
			w.unschedulable("0/3 nodes are available: 1 Insufficient deviceclass.resource.kubernetes.io/none, 2 node(s) didn't match Pod's node affinity/selector.")
		}, NoClass, false, []string{"needs deviceclass/none, and there is none"}},
		{"a claim of a class that does not exist", func(w *ward) {
			w.claim("own", "none", 1)
			w.unschedulable("0/3 nodes are available: request gpu: device class none does not exist. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")
		}, NoClass, false, []string{"request gpu of claim team/own needs deviceclass/none"}},
		{"the scheduler has lost the name of the class", func(w *ward) {
			w.Classes = append(w.Classes, class("older", gpu, "true"))
			w.unschedulable(sayInsufficient)
		}, MappingLost, true, []string{"deviceclass/older carries it too", "kubectl patch deviceclass gpu.nvidia.com"}},
		{"the class wants another type", func(w *ward) {
			w.Slices = []resourcev1.ResourceSlice{slice(1, "gpu-0", "mig")}
			w.unschedulable(sayCannot)
		}, ClassSelectsNothing, false, []string{`type is "mig", the class wants "gpu"`, "device gpu-0 of pool gpu-1", "1 device"}},
		{"the class reads another driver's domain", func(w *ward) {
			w.Classes[0].Spec.Selectors[0].CEL.Expression = `device.driver == "gpu.nvidia.com" && device.attributes["other.example.com"].?type.orValue("") == "gpu"`
			w.unschedulable(sayCannot136)
		}, ClassSelectsNothing, false, []string{"is false"}},
		{"the selectors of a claim select nothing", func(w *ward) {
			w.claim("own", "gpu.nvidia.com", 1)
			w.Claims[0].Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{
				{CEL: &resourcev1.CELDeviceSelector{Expression: `"mig" == device.attributes["gpu.nvidia.com"].type`}}}
			w.pod.Requests = nil
			w.unschedulable(sayCannot)
		}, ClassSelectsNothing, false, []string{`type is "gpu", the class wants "mig"`, "the selectors of request gpu of claim team/own"}},
		{"an expression fails on a device, 1.37", func(w *ward) {
			w.Slices[0].Spec.Devices[0].Attributes = nil
			w.schedulerError(`running "DynamicResources" filter plugin: class gpu.nvidia.com: selector #0 on device gpu.nvidia.com/gpu-1/gpu-0: CEL runtime error: no such key: type. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields`)
		}, ClassFails, false, []string{"deviceclass/gpu.nvidia.com fails", "device gpu-0 of pool gpu-1", "kubectl edit deviceclass gpu.nvidia.com"}},
		{"an expression fails on a device, 1.36", func(w *ward) {
			w.schedulerError(`running "DynamicResources" filter plugin: class gpu.nvidia.com: selector #0: CEL runtime error: no such key: type`)
		}, ClassFails, false, []string{"no such key: type"}},
		{"the driver publishes nothing", func(w *ward) {
			w.Slices = nil
			w.unschedulable(sayCannot)
		}, NoSlices, false, []string{"driver gpu.nvidia.com publishes no device on node/gpu-1", "driver pod dra/driver-x is ready", "dramigrate verify gpu-a"}},
		{"the driver is not there, another publishes", func(w *ward) {
			w.Slices[0].Spec.Driver = "dra.net"
			w.Pods = nil
			w.unschedulable(sayCannot)
		}, NoSlices, false, []string{"published there: dra.net (2)", "no driver's pod runs there"}},
		{"a slice of the pool is missing", func(w *ward) {
			w.Slices[0].Spec.Pool.ResourceSliceCount = 2
			w.unschedulable(sayCannot)
		}, SlicesIncomplete, false, []string{"pool gpu-1 of driver gpu.nvidia.com has 1 of 2 slices"}},
		{"claims hold all devices", func(w *ward) {
			w.hold("serve", "gpu-0")
			w.hold("serve", "gpu-1")
			w.unschedulable(sayCannot)
		}, Taken, false, []string{"2 of the 2", "held by deployment/team/serve (2 pods)", "does not preempt"}},
		{"pods hold all that the plugin offers", func(w *ward) {
			w.allocatable(2)
			w.Slices = nil
			w.byPlugin("batch", 2)
			w.unschedulable(sayInsufficient)
		}, Taken, false, []string{"held by job/team/batch (1 pod)"}},
		{"pods hold all that the plugin offers, and no class carries the name", func(w *ward) {
			w.allocatable(2)
			w.Slices, w.Classes = nil, nil
			w.byPlugin("batch", 2)
			w.unschedulable(sayInsufficient)
		}, Taken, false, []string{"held by job/team/batch (1 pod)"}},
		{"allocatable is still above 0", func(w *ward) {
			w.allocatable(1)
			w.byPlugin("batch", 1)
			w.unschedulable(sayInsufficient)
		}, PluginFull, false, []string{"allocatable nvidia.com/gpu is 1, pods ask for 1; 2 of 2 devices", "dramigrate status gpu-a"}},
		{"a device taint in the slice", func(w *ward) {
			w.Slices[0].Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "example.com/unhealthy", Value: "yes", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
			w.hold("serve", "gpu-1")
			w.unschedulable(sayCannot)
		}, Tainted, false, []string{"example.com/unhealthy=yes:NoSchedule"}},
		{"more than the node has", func(w *ward) {
			w.pod.Requests[0].Count = 4
			w.unschedulable(sayCannot)
		}, NodesTooSmall, false, []string{"asks for 4", "has 2"}},
		{"the node is being switched", func(w *ward) {
			w.gpuNode().Spec.Taints = []corev1.Taint{gate.SwitchingTaint()}
			w.unschedulable(strings.Replace(sayShut, "were unschedulable", "had untolerated taint(s)", 1))
		}, NodesClosed, false, []string{"closed by the taint dramigrate.dev/switching", "dramigrate status gpu-a"}},
		{"the node is cordoned", func(w *ward) {
			w.gpuNode().Spec.Unschedulable = true
			w.unschedulable(sayShut)
		}, NodesClosed, false, []string{"kubectl uncordon gpu-1"}},
		{"a taint of others", func(w *ward) {
			w.gpuNode().Spec.Taints = []corev1.Taint{{Key: "team", Value: "other", Effect: corev1.TaintEffectNoSchedule}}
			w.unschedulable(strings.Replace(sayShut, "were unschedulable", "had untolerated taint(s)", 1))
		}, NotDevices, false, []string{"1 node(s) had untolerated taint(s)"}},
		{"no CPU is left", func(w *ward) { w.unschedulable(sayCPU) }, NotDevices, false, []string{"1 Insufficient cpu"}},
		{"no CPU is left on the GPU node, and CPU nodes have no devices", func(w *ward) {
			w.pod.Placement.NodeSelector = nil
			w.unschedulable("0/3 nodes are available: 1 Insufficient cpu, 2 cannot allocate all claims. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")
		}, NotDevices, true, []string{"1 Insufficient cpu", "2 of 2"}},
		{"the selector fits no node with devices", func(w *ward) {
			w.pod.Placement.NodeSelector = map[string]string{"pool": "none"}
			w.unschedulable("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")
		}, NotDevices, false, []string{"3 node(s) didn't match"}},
		{"devices are free all the same", func(w *ward) { w.unschedulable(sayCannot) }, Unknown, true,
			[]string{"free devices of deviceclass/gpu.nvidia.com: 2 of 2", "kubectl get devicetaintrules"}},
		{"a quota of claims", func(w *ward) {
			w.schedulerError(`running PreBind plugin "DynamicResources": create claim for extended resources team/: resourceclaims.resource.k8s.io "train-extended-resources-lxd7b" is forbidden: exceeded quota: team-gpus, requested: count/resourceclaims.resource.k8s.io=1, used: count/resourceclaims.resource.k8s.io=0, limited: count/resourceclaims.resource.k8s.io=0`)
		}, Quota, false, []string{"resourcequota/team/team-gpus", "limited count/resourceclaims.resource.k8s.io=0", "kubectl edit resourcequota -n team team-gpus"}},
		{"a webhook refuses the claim", func(w *ward) {
			w.schedulerError(`running PreBind plugin "DynamicResources": create claim for extended resources team/: admission webhook "policy.example.com" denied the request: no owner`)
		}, ClaimRefused, false, []string{"policy.example.com"}},
		{"a claim and the name, on a node of the plugin", func(w *ward) {
			w.allocatable(2)
			w.claim("own", "gpu.nvidia.com", 1)
			w.schedulerError(`running PreBind plugin "DynamicResources": nil or empty request mappings, no update of pod team/train ExtendedResourceClaimStatus`)
		}, ClaimAndName, false, []string{"nvidia.com/gpu", "deviceclass/gpu.nvidia.com carries nvidia.com/gpu", "DRM006"}},
		{"more than 32, 1.37", func(w *ward) {
			w.pod.Requests[0].Count = 33
			w.schedulerError(`running "DynamicResources" filter plugin: claim team/<extended-resources>, request container-0-request-0: adding 33 devices exceeds the claim limit of 32, with 0 already accounted for`)
		}, TooMany, false, []string{"asks for 33 nvidia.com/gpu"}},
		{"more than 32, 1.36", func(w *ward) {
			w.schedulerError(`running "DynamicResources" filter plugin: claim team/<extended-resources>: number of requested devices 33 exceeds the claim limit of 32`)
		}, TooMany, false, []string{"more than 32 devices"}},
		{"its claim does not exist", func(w *ward) {
			w.pod.Claims = []string{"own"}
			w.unschedulable(`0/3 nodes are available: resourceclaim.resource.k8s.io "own" not found.`)
		}, ClaimMissing, false, []string{"resourceclaim/team/own"}},
		{"its claim does not exist, of which the scheduler does not speak", func(w *ward) { w.pod.Claims = []string{"own"} },
			ClaimMissing, false, []string{"resourceclaim/team/own"}},
		{"its claim cannot be made", func(w *ward) {
			w.pod.Claims, w.pod.ClaimTemplates = []string{""}, []string{"channel"}
			w.event("FailedResourceClaimCreation", "resource_claim", `PodResourceClaim channel: failed to create ResourceClaim: resourceclaims.resource.k8s.io "train-channel-x" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=0`)
			w.unschedulable("0/3 nodes are available: waiting for the claim.")
		}, Quota, false, []string{"resourcequota/team/team"}},
		{"gated", func(w *ward) {
			w.pod.SchedulingGates = []string{"example.com/hold"}
			w.pod.Scheduled = &cluster.Condition{Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates"}
		}, Gated, false, []string{"example.com/hold"}},
		{"queued", func(w *ward) {
			w.pod.SchedulingGates, w.pod.Queue = []string{"kueue.x-k8s.io/admission"}, "gpus"
		}, Queued, false, []string{"queue gpus", "kubectl get workloads -n team"}},
		{"another scheduler is silent", func(w *ward) { w.pod.SchedulerName = "volcano" }, Unscheduled, true, []string{"volcano"}},
		{"another scheduler speaks", func(w *ward) {
			w.pod.SchedulerName = "volcano"
			w.unschedulable("3/3 tasks in gang unschedulable: pod group is not ready")
		}, OtherScheduler, false, []string{"pod group is not ready"}},
		{"just made", func(w *ward) { w.pod.Created = now.Add(-3 * time.Second) }, None, false, nil},

		{"the kubelet remembers the plugin", func(w *ward) {
			w.served()
			w.pod.Waiting, w.pod.WaitingMessage = "CreateContainerConfigError", "endpoint not found in cache for a registered resource: nvidia.com/gpu"
		}, KubeletRemembers, false, []string{"PodResources", "dramigrate apply gpu-a"}},
		{"the driver has left, its slices not yet", func(w *ward) {
			w.served()
			w.Pods = nil
			w.pod.Waiting = "ContainerCreating"
			w.event("FailedPrepareDynamicResources", "kubelet", "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu.nvidia.com is not registered")
		}, DriverGone, false, []string{"is not registered", "no driver's pod runs there"}},
		{"the driver has left, its slices not yet, and is still on the kubelet's list", func(w *ward) {
			w.served()
			w.Pods = nil
			w.pod.Waiting = "ContainerCreating"
			w.event("FailedPrepareDynamicResources", "kubelet", "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources: rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial unix /var/lib/kubelet/plugins/gpu.nvidia.com/dra.sock: connect: no such file or directory\"")
		}, DriverGone, false, []string{"is not registered", "no driver's pod runs there"}},
		{"the driver has left, no events", func(w *ward) {
			w.served()
			w.withoutDriver()
			w.pod.Waiting = "ContainerCreating"
		}, DriverGone, true, []string{"driver gpu.nvidia.com"}},
		{"the driver cannot prepare", func(w *ward) {
			w.served()
			w.pod.Waiting = "ContainerCreating"
			w.event("FailedPrepareDynamicResources", "kubelet", "Failed to prepare dynamic resources: NodePrepareResources failed for claim team/x: no such GPU")
		}, PrepareFails, false, []string{"no such GPU"}},
		{"the runtime does not find the device", func(w *ward) {
			w.served()
			w.pod.Waiting, w.pod.WaitingMessage = "CreateContainerError", "failed to inject CDI devices: unresolvable CDI devices k8s.gpu.nvidia.com/claim=x"
		}, PrepareFails, false, []string{"unresolvable CDI devices"}},
		{"an old kubelet, soon after the plugin left", func(w *ward) {
			w.served()
			w.gpuNode().Status.NodeInfo.KubeletVersion = "v1.35.4"
			w.pod.Phase, w.pod.Reason = corev1.PodFailed, "UnexpectedAdmissionError"
			w.pod.Message = "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected"
		}, OldKubelet, false, []string{"v1.35.4", "dramigrate rollback gpu-a"}},
		{"an old kubelet, later", func(w *ward) {
			w.served()
			w.gpuNode().Status.NodeInfo.KubeletVersion = "v1.35.4-eks-1"
			w.pod.Phase, w.pod.Reason = corev1.PodFailed, "OutOfnvidia.com/gpu"
			w.pod.Message = "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 0, capacity: 0"
		}, OldKubelet, false, []string{"v1.35.4-eks-1", "requested: 1"}},
		{"an old kubelet that gives no device", func(w *ward) {
			w.served()
			w.gpuNode().Status.NodeInfo.KubeletVersion = "v1.35.4"
			w.pod.Phase, w.pod.Ready = corev1.PodRunning, true
		}, OldKubelet, true, []string{"runs without its devices"}},
		{"bound as the plugin left", func(w *ward) {
			w.bound()
			w.pod.Phase, w.pod.Reason = corev1.PodFailed, "UnexpectedAdmissionError"
			w.pod.Message = "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected"
		}, Refused, false, []string{"no healthy devices present"}},
		{"deleted while the driver is gone", func(w *ward) {
			w.served()
			w.withoutDriver()
			w.pod.Phase, w.pod.Terminating = corev1.PodRunning, true
		}, CannotEnd, true, []string{"driver gpu.nvidia.com", "do not delete the pod by force"}},
		{"deleted, the driver is there", func(w *ward) {
			w.served()
			w.pod.Phase, w.pod.Terminating = corev1.PodRunning, true
		}, None, false, nil},
		{"deleted, held by a finalizer", func(w *ward) {
			w.served()
			w.pod.Terminating, w.pod.Finalizers = true, []string{"example.com/backup"}
		}, NotDevices, false, []string{"example.com/backup"}},
		{"no image", func(w *ward) {
			w.served()
			w.pod.Waiting, w.pod.WaitingMessage = "ImagePullBackOff", "Back-off pulling image"
		}, NotDevices, true, []string{"ImagePullBackOff"}},
		{"its program failed", func(w *ward) {
			w.served()
			w.pod.Phase, w.pod.Waiting = corev1.PodFailed, "Error"
		}, NotDevices, true, []string{"kubectl logs -n team train"}},
		{"runs", func(w *ward) {
			w.served()
			w.pod.Phase, w.pod.Ready = corev1.PodRunning, true
		}, None, false, nil},
		{"has ended", func(w *ward) {
			w.served()
			w.pod.Phase = corev1.PodSucceeded
		}, None, false, nil},
		{"starts for a long time, for no reason that is known", func(w *ward) {
			w.served()
			w.pod.Waiting = "ContainerCreating"
			w.event("FailedMount", "kubelet", "MountVolume.SetUp failed for volume data")
		}, Unknown, true, []string{"MountVolume.SetUp failed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWard()
			tt.set(w)
			d := w.diagnose()
			if d.Cause != tt.cause || d.Certain == tt.likely {
				t.Errorf("cause %s, certain %t, want %s, %t\n%s\n%q", d.Cause, d.Certain, tt.cause, !tt.likely, d.Why, d.Evidence)
			}
			all := d.Why + "\n" + strings.Join(d.Evidence, "\n") + "\n" + d.Remedy
			for _, want := range tt.says {
				if !strings.Contains(all, want) {
					t.Errorf("%q is not in\n%s", want, all)
				}
			}
			if d.Cause != None && (d.Why == "" || d.Remedy == "" || len(d.Evidence) == 0) {
				t.Errorf("no sentence, evidence or remedy: %+v", d)
			}
			if d.Pod != "team/train" || d.Node != w.pod.Node {
				t.Errorf("it is about pod %s on %q", d.Pod, d.Node)
			}
		})
	}
}

// claim gives the pod a claim of its own, without devices.
func (w *ward) claim(name, class string, count int64) {
	w.pod.Claims = append(w.pod.Claims, name)
	w.Claims = append(w.Claims, resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, Count: count}}}}},
	})
}

// What cannot be seen is named, and no cause is concluded from its absence.
func TestUnreadParts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		part string
		set  func(*ward)
		text string
	}{
		{cluster.PartClasses, func(w *ward) { w.Classes = nil }, sayInsufficient},
		{cluster.PartSlices, func(w *ward) { w.Slices = nil }, sayCannot},
		{cluster.PartClaims, func(w *ward) { w.pod.Claims = []string{"own"} }, sayCannot},
	} {
		w := newWard()
		tt.set(w)
		w.Unknown = []cluster.Unknown{{Part: tt.part, Reason: "forbidden"}}
		w.unschedulable(tt.text)
		d := w.diagnose()
		if d.Cause != Unknown || !slices.Contains(d.Unseen, cluster.Unknown{Part: tt.part, Reason: "forbidden"}) {
			t.Errorf("%s: cause %s (%s), unseen %v", tt.part, d.Cause, d.Why, d.Unseen)
		}
	}
}

// A DeviceTaint that the request tolerates keeps nothing from it.
func TestToleratedDeviceTaint(t *testing.T) {
	t.Parallel()
	w := newWard()
	for i := range w.Slices[0].Spec.Devices {
		w.Slices[0].Spec.Devices[i].Taints = []resourcev1.DeviceTaint{{Key: "k", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	w.pod.Requests = nil
	w.claim("own", "gpu.nvidia.com", 1)
	w.unschedulable(sayCannot)
	if d := w.diagnose(); d.Cause != Tainted {
		t.Errorf("cause %s, want %s", d.Cause, Tainted)
	}
	w.Claims[0].Spec.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Key: "k", Operator: resourcev1.DeviceTolerationOpExists}}
	if d := w.diagnose(); d.Cause != Unknown {
		t.Errorf("cause %s, want %s: devices are free", d.Cause, Unknown)
	}
}

// Devices that several nodes share belong to each of them.
func TestSharedSlices(t *testing.T) {
	t.Parallel()
	w := newWard()
	w.Slices[0].Spec.NodeName, w.Slices[0].Spec.AllNodes = nil, ptr.To(true)
	w.hold("serve", "gpu-0", "gpu-1")
	w.pod.Placement.NodeSelector = nil
	w.unschedulable("0/3 nodes are available: 3 cannot allocate all claims.")
	if d := w.diagnose(); d.Cause != Taken {
		t.Errorf("cause %s, want %s: %s", d.Cause, Taken, d.Why)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	v := verdictOf(&cluster.Pod{Scheduled: &cluster.Condition{Reason: "Unschedulable",
		Message: "0/9 nodes are available: 1 cannot allocate all claims, 2 node(s) had untolerated taint {a: b, c}, 6 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/9 nodes are available: 9 Preemption is not helpful for scheduling."}}, nil)
	want := []refusal{{1, "cannot allocate all claims"}, {2, "node(s) had untolerated taint {a: b, c}"}, {6, "Insufficient nvidia.com/gpu"}}
	if !slices.Equal(v.refusals, want) {
		t.Errorf("%v, want %v", v.refusals, want)
	}
}

// The newest event stands in for a condition without text.
func TestVerdictOfEvents(t *testing.T) {
	t.Parallel()
	v := verdictOf(&cluster.Pod{}, []cluster.PodEvent{{Reason: "Pulled", Message: "x"}, {Reason: failedScheduling, Message: sayCannot}, {Reason: failedScheduling, Message: sayInsufficient}})
	if v.reason != corev1.PodReasonUnschedulable || !v.cannotAllocate() {
		t.Errorf("verdict %+v", v)
	}
}
