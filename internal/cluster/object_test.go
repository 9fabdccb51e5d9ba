package cluster

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// fullPod has every field of the projection set, in the order that pods have them: a
// sidecar between init containers, and more containers than requests.
func fullPod() Pod {
	return Pod{
		Namespace: "team", Name: "train-0", UID: "u1", Node: "gpu-1", Phase: corev1.PodRunning,
		Labels: map[string]string{"app": "train", HelperLabel: "probe"}, HelperNode: "gpu-1",
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
		Waiting:   "CrashLoopBackOff",
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
