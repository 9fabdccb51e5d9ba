package cluster

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// fullPod has every field of the projection set, in the order that pods have them: a
// sidecar between init containers, and more containers than requests.
func fullPod() Pod {
	return Pod{
		Namespace: "team", Name: "train-0", UID: "u1", Node: "gpu-1", Phase: corev1.PodRunning,
		Labels: map[string]string{"app": "train", HelperLabel: "probe", QueueLabel: "gpus"}, HelperNode: "gpu-1",
		Owner:  Owner{Kind: "Job", Name: "train", UID: "u2"},
		Static: true, Terminating: true, Ready: true, LocalStorage: true,
		SchedulerName: "default-scheduler",
		Requests: []Request{
			{Container: "warm", Resource: "nvidia.com/gpu", Count: 1, Init: true},
			{Container: "side", Resource: "nvidia.com/gpu", Count: 2},
			{Container: "load", Resource: "nvidia.com/gpu", Count: 3, Init: true},
			{Container: "main", Resource: "amd.com/gpu", Count: 1},
			{Container: "main", Resource: "nvidia.com/gpu", Count: 4},
		},
		Claims: []string{"shared-claim", ""},
		Bridge: &Bridge{Claim: "train-0-extended-resources-9", Mappings: []Mapping{
			{Container: "main", Resource: "nvidia.com/gpu", Request: "container-3-request-0"},
		}},
		HostPaths: []string{"/var/log", "/dev"},
		Images:    []string{"warm:1", "side:1", "load:1", "main:1", "log:1"},
		Waiting:   "CrashLoopBackOff", WaitingMessage: "back-off 10s",
		Created:  time.Date(2026, 9, 1, 12, 0, 7, 0, time.UTC),
		Priority: ptr.To[int32](1000), PriorityClass: "high", PreemptionPolicy: corev1.PreemptNever,
		GracePeriodSeconds: ptr.To[int64](0), RestartPolicy: corev1.RestartPolicyNever, RuntimeClass: "nvidia",
		Finalizers: []string{"example.com/hold"}, Guaranteed: true, Privileged: true, VisibleDevices: "all",
		SchedulingGates: []string{"b", "a"}, Group: "train", Queue: "gpus",
		NodeLabels: []corev1.NodeSelectorRequirement{
			{Key: "gpu", Operator: corev1.NodeSelectorOpExists},
			{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
		},
		CPU:            1500,
		Memory:         2 << 30,
		ClaimTemplates: []string{"pending", "resolved"},
		Placement: &Placement{
			NodeSelector: map[string]string{"zone": "a"},
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu", Operator: corev1.NodeSelectorOpExists}}},
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"gpu-1"}}}},
			}},
			Tolerations: []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}},
		},
		Scheduled: &Condition{Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"},
		Reason:    "UnexpectedAdmissionError", Message: "Allocate failed",
	}
}

// stored is a pod as it comes back from a file.
func stored(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	data, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var out corev1.Pod
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return &out
}

func TestObjectIsTheInverse(t *testing.T) {
	t.Parallel()
	full := fullPod()
	// A field that is added to the projection has to be in the pod above, or a plan
	// from files would be made without it.
	for v, i := reflect.ValueOf(full), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("field %s of the example is not set", v.Type().Field(i).Name)
		}
	}
	for _, want := range []Pod{full, {Namespace: "a", Name: "bare", Images: []string{""}}, {}} {
		if diff := cmp.Diff(want, ProjectPod(want.Object())); diff != "" {
			t.Errorf("ProjectPod(Object()) (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, ProjectPod(stored(t, want.Object())), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("from a file (-want +got):\n%s", diff)
		}
	}
}

func FuzzObjectIsTheInverse(f *testing.F) {
	full := fullPod()
	seed, err := json.Marshal(full.Object())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"spec":{"initContainers":[{"name":"a","restartPolicy":"Always","resources":{"limits":{"x/a":"1"}}},` +
		`{"name":"a","resources":{"limits":{"x/a":"1500m","x/b":"2"}}}],"containers":[{"name":"a","resources":{"requests":{"x/c":"1e30"}}},{}]}}`))
	f.Add([]byte(`{"metadata":{"labels":{},"ownerReferences":[{"controller":true}]},"spec":{"resourceClaims":[{"name":"a"},` +
		`{"name":"b","resourceClaimName":""}],"volumes":[{"hostPath":{"path":""}}]},"status":{"extendedResourceClaimStatus":{}}}`))
	f.Add([]byte(`{"metadata":{"creationTimestamp":"2026-01-01T00:00:00.5+02:00","labels":{"scheduling.x-k8s.io/pod-group":"g"}},` +
		`"spec":{"nodeSelector":{"a":"b"},"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` +
		`{"matchExpressions":[{"key":"a","operator":"In","values":["b"]},{"key":"a","operator":"Exists","values":[]}]}]}}},` +
		`"resourceClaims":[{"name":"a","resourceClaimTemplateName":"t"},{"name":"b","resourceClaimTemplateName":""},{"name":"c","resourceClaimTemplateName":"u"}],` +
		`"containers":[{"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}],"securityContext":{"privileged":true},` +
		`"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}}}]},` +
		`"status":{"resourceClaimStatuses":[{"name":"c"}],"conditions":[{"type":"PodScheduled","status":"False"}],` +
		`"containerStatuses":[{"state":{"terminated":{"reason":"StartError","exitCode":128,"message":"no CDI device"}}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var pod corev1.Pod
		if err := json.Unmarshal(data, &pod); err != nil {
			t.Skip(err)
		}
		want := ProjectPod(&pod)
		if diff := cmp.Diff(want, ProjectPod(want.Object())); diff != "" {
			t.Errorf("ProjectPod(Object()) (-want +got):\n%s", diff)
		}
	})
}
