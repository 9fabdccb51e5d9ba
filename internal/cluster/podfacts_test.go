package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// podOf reads a pod as kubectl prints it.
func podOf(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// The API server fills in defaults for every pod: they cost no memory.
func TestOrdinaryPodHasNoFacts(t *testing.T) {
	t.Parallel()
	got := ProjectPod(podOf(t, `
metadata: {name: web, namespace: team}
spec:
  preemptionPolicy: PreemptLowerPriority
  restartPolicy: Always
  terminationGracePeriodSeconds: 30
  schedulerName: default-scheduler
  nodeName: n1
  containers: [{name: c, image: "web:1", env: [{name: A, value: b}], securityContext: {privileged: false}}]
status:
  phase: Running
  qosClass: BestEffort
  conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: "True"}]
`))
	want := Pod{Namespace: "team", Name: "web", Node: "n1", Phase: corev1.PodRunning, Ready: true,
		SchedulerName: "default-scheduler", Images: []string{"web:1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ProjectPod (-want +got):\n%s", diff)
	}
}

func TestProjectPodFacts(t *testing.T) {
	t.Parallel()
	got := ProjectPod(podOf(t, `
metadata:
  name: train
  namespace: team
  creationTimestamp: "2026-09-01T14:00:07+02:00"
  finalizers: [example.com/hold]
  labels: {kueue.x-k8s.io/queue-name: gpus, pod-group.scheduling.sigs.k8s.io: old}
spec:
  priority: 0
  priorityClassName: high
  preemptionPolicy: Never
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 3600
  runtimeClassName: nvidia
  schedulingGates: [{name: example.com/quota}]
  nodeSelector: {nvidia.com/gpu.product: A100, kubernetes.io/os: linux}
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, preference: {matchExpressions: [{key: liked, operator: Exists}]}}
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: nvidia.com/mig.capable, operator: In, values: ["true"]}, {key: kubernetes.io/os, operator: In, values: [linux]}]
        - matchExpressions: [{key: nvidia.com/gpu.count, operator: Gt, values: ["3"]}]
          matchFields: [{key: metadata.name, operator: In, values: [n1]}]
  resourceClaims: [{name: net, resourceClaimTemplateName: channel}, {name: own, resourceClaimName: mine}]
  initContainers:
  - {name: i, securityContext: {privileged: true}}
  containers:
  - {name: a, env: [{name: NVIDIA_VISIBLE_DEVICES, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}
  - {name: b, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}
status:
  phase: Pending
  qosClass: Guaranteed
  reason: OutOfnvidia.com/gpu
  message: "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu"
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/9 nodes are available"}]
  containerStatuses:
  - state: {waiting: {reason: CreateContainerError, message: "unresolvable CDI devices"}}
`))
	in := corev1.NodeSelectorOpIn
	want := Pod{
		Namespace: "team", Name: "train", Phase: corev1.PodPending,
		Labels:  map[string]string{"kueue.x-k8s.io/queue-name": "gpus", "pod-group.scheduling.sigs.k8s.io": "old"},
		Claims:  []string{"", "mine"},
		Images:  []string{"", "", ""},
		Waiting: "CreateContainerError", WaitingMessage: "unresolvable CDI devices",
		Created:  time.Date(2026, 9, 1, 12, 0, 7, 0, time.UTC),
		Priority: ptr.To[int32](0), PriorityClass: "high", PreemptionPolicy: corev1.PreemptNever,
		GracePeriodSeconds: ptr.To[int64](3600), RestartPolicy: corev1.RestartPolicyOnFailure, RuntimeClass: "nvidia",
		Finalizers: []string{"example.com/hold"}, Guaranteed: true, Privileged: true, VisibleDevices: "all",
		SchedulingGates: []string{"example.com/quota"}, Group: "old", Queue: "gpus",
		NodeLabels: []corev1.NodeSelectorRequirement{ // what is only preferred is not asked for
			{Key: "kubernetes.io/os", Operator: in, Values: []string{"linux"}},
			{Key: "nvidia.com/gpu.count", Operator: corev1.NodeSelectorOpGt, Values: []string{"3"}},
			{Key: "nvidia.com/gpu.product", Operator: in, Values: []string{"A100"}},
			{Key: "nvidia.com/mig.capable", Operator: in, Values: []string{"true"}},
		},
		ClaimTemplates: []string{"channel"},
		Scheduled:      &Condition{Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/9 nodes are available"},
		Placement: &Placement{
			NodeSelector: map[string]string{"nvidia.com/gpu.product": "A100", "kubernetes.io/os": "linux"},
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "nvidia.com/mig.capable", Operator: in, Values: []string{"true"}}, {Key: "kubernetes.io/os", Operator: in, Values: []string{"linux"}}}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "nvidia.com/gpu.count", Operator: corev1.NodeSelectorOpGt, Values: []string{"3"}}},
					MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: in, Values: []string{"n1"}}}},
			}},
		},
		Reason:         "OutOfnvidia.com/gpu", Message: "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ProjectPod (-want +got):\n%s", diff)
	}
}

func TestPodGroup(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"field": `{"metadata":{"labels":{"scheduling.x-k8s.io/pod-group":"label"}},"spec":{"schedulingGroup":{"podGroupName":"field"}}}`,
		"label": `{"metadata":{"labels":{"scheduling.x-k8s.io/pod-group":"label","pod-group.scheduling.sigs.k8s.io":"old"}}}`,
		"":      `{"metadata":{"labels":{"app":"x"}},"spec":{"schedulingGroup":{}}}`,
	} {
		if got := podGroup(podOf(t, text)); got != want {
			t.Errorf("group %q, want %q of %s", got, want, text)
		}
	}
}

// The QoS class of a pod without a status follows from its containers: Guaranteed if
// each has requests of CPU and memory that equal its limits.
func TestGuaranteed(t *testing.T) {
	t.Parallel()
	for resources, want := range map[string]bool{
		`{"requests":{"cpu":"2","memory":"1Gi","nvidia.com/gpu":"1"},"limits":{"cpu":"2","memory":"1Gi","nvidia.com/gpu":"1"}}`: true,
		`{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"2","memory":"1Gi"}}`:                                           false,
		`{"requests":{"nvidia.com/gpu":"1"},"limits":{"nvidia.com/gpu":"1"}}`:                                                   false,
	} {
		p := ProjectPod(podOf(t, `{"spec":{"containers":[{"name":"c","resources":`+resources+`}]}}`))
		if p.Guaranteed != want {
			t.Errorf("guaranteed %t, want %t with %s", p.Guaranteed, want, resources)
		}
	}
}

// The message of a program that has ended may be the end of its log.
func TestWaitingMessageIsNotTheProgramsOwn(t *testing.T) {
	t.Parallel()
	state := func(reason string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: 128, Message: "text"}}}}}}
	}
	for reason, want := range map[string]string{"StartError": "text", "ContainerCannotRun": "text", "Error": "", "OOMKilled": ""} {
		if p := ProjectPod(state(reason)); p.Waiting != reason || p.WaitingMessage != want {
			t.Errorf("waiting %q, message %q, want %q of %s", p.Waiting, p.WaitingMessage, want, reason)
		}
	}
}

func TestTextIsBounded(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{Status: corev1.PodStatus{Message: strings.Repeat("x", 2047) + "ä" + strings.Repeat("y", 1<<20)}}
	got := ProjectPod(p).Message
	if want := strings.Repeat("x", 2047); got != want { // the next character would need two bytes more
		t.Errorf("message of %d bytes that ends in %q, want 2047 x", len(got), got[len(got)-3:])
	}
}

func TestWorkloadOwner(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		owner  Owner
		labels map[string]string
		want   Owner
	}{
		{"of a Deployment", Owner{"ReplicaSet", "train-7d4f9c", "u"}, map[string]string{"pod-template-hash": "7d4f9c"}, Owner{"Deployment", "train", ""}},
		{"of a ReplicaSet that stands alone", Owner{"ReplicaSet", "train-7d4f9c", "u"}, nil, Owner{"ReplicaSet", "train-7d4f9c", "u"}},
		{"of an Argo Rollout", Owner{"ReplicaSet", "train-7d4f9c", "u"}, map[string]string{"rollouts-pod-template-hash": "7d4f9c"}, Owner{"ReplicaSet", "train-7d4f9c", "u"}},
		{"with the label of another", Owner{"ReplicaSet", "train-1", "u"}, map[string]string{"pod-template-hash": "2"}, Owner{"ReplicaSet", "train-1", "u"}},
		{"of a Job", Owner{"Job", "train-abc", "u"}, map[string]string{"pod-template-hash": "abc"}, Owner{"Job", "train-abc", "u"}},
		{"of nobody", Owner{}, map[string]string{"pod-template-hash": "abc"}, Owner{}},
	} {
		p := Pod{Owner: tt.owner, Labels: tt.labels}
		if got := p.WorkloadOwner(); got != tt.want {
			t.Errorf("a pod %s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
