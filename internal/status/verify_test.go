package status

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// switched is a cluster whose pool gpu-a, one node with two GPUs, is on DRA.
func switched(t *testing.T) *cluster.Snapshot {
	t.Helper()
	now := metav1.Unix(1, 0)
	state, err := cluster.NodeState{Pool: "gpu-a", Operation: "migrate", Run: "r1", Epoch: 1, Phase: "settle",
		Advertised: []string{"GPU-2", "GPU-1"}, OpenedAt: &now, SettledAt: &now}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	name := "nvidia.com/gpu"
	device := func(name, uuid string) resourcev1.Device {
		return resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"uuid": {StringValue: &uuid}, "type": {StringValue: new("gpu")}}}
	}
	driver := appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dra", Name: "driver", UID: "driver"},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"dra-driver-nvidia-gpu-component": "kubelet-plugin"}},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"dramigrate.dev/allocation": "dra"},
				Volumes: []corev1.Volume{{Name: "r", VolumeSource: corev1.VolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/plugins_registry"}}}},
			},
		}},
	}
	return &cluster.Snapshot{
		Nodes: []corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "a-1", UID: "a-1",
				Labels:      map[string]string{"dramigrate.dev/allocation": "dra"},
				Annotations: map[string]string{"dramigrate.dev/state": state}},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}},
		DaemonSets: []appsv1.DaemonSet{driver},
		Pods: []cluster.Pod{{Namespace: "dra", Name: "driver-x", UID: "d1", Node: "a-1", Phase: corev1.PodRunning, Ready: true,
			Owner: cluster.Owner{Kind: "DaemonSet", Name: "driver", UID: "driver"}}},
		Slices: []resourcev1.ResourceSlice{{
			ObjectMeta: metav1.ObjectMeta{Name: "a-1"},
			Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: new("a-1"),
				Pool:    resourcev1.ResourcePool{Name: "a-1", Generation: 1, ResourceSliceCount: 1},
				Devices: []resourcev1.Device{device("gpu-0", "GPU-1"), device("gpu-1", "GPU-2")}},
		}},
		Classes: []resourcev1.DeviceClass{{
			ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
			Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &name,
				Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}}}},
		}},
	}
}

func target() Target {
	return Target{Pool: cluster.NodePool{Name: "gpu-a", Nodes: []string{"a-1"}}, Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com"}
}

// bad are the looks that are not OK, as "result: detail".
func bad(v *Verification) []string {
	var out []string
	collect := func(list []Look) {
		for _, l := range list {
			if l.Result != OK {
				out = append(out, string(l.Result)+": "+l.Detail)
			}
		}
	}
	collect(v.Class)
	for _, n := range v.Nodes {
		collect(n.Looks)
	}
	return out
}

func TestVerify(t *testing.T) {
	for _, c := range []struct {
		title  string
		change func(*cluster.Snapshot)
		result Result
		want   []string // parts of what is not OK, in order
	}{
		{"all as it has to be", func(*cluster.Snapshot) {}, OK, nil},
		{"the plugin is back", func(s *cluster.Snapshot) {
			s.Nodes[0].Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("2")
		}, Double, []string{"double: ADVERTISED TWICE", "failed: nvidia.com/gpu is 2", "unknown: the kubelet has met the plugin again since the node had settled (allocatable nvidia.com/gpu is 2)"}},
		// Its devices are not there yet, or not there any more.
		{"a pod of the plugin", func(s *cluster.Snapshot) {
			s.DaemonSets = append(s.DaemonSets, appsv1.DaemonSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "plugin", UID: "plugin"},
				Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "c", Image: "nvcr.io/nvidia/k8s-device-plugin:v0.17.0"}},
					Volumes: []corev1.Volume{{Name: "p", VolumeSource: corev1.VolumeSource{
						HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/device-plugins"}}}},
				}}},
			})
			s.Pods = append(s.Pods,
				cluster.Pod{Namespace: "kube-system", Name: "plugin-x", UID: "p1", Node: "a-1", Phase: corev1.PodRunning, Terminating: true,
					Owner: cluster.Owner{Kind: "DaemonSet", Name: "plugin", UID: "plugin"}},
				cluster.Pod{Namespace: "kube-system", Name: "plugin-y", UID: "p2", Node: "b-1", Phase: corev1.PodRunning,
					Owner: cluster.Owner{Kind: "DaemonSet", Name: "plugin", UID: "plugin"}})
		}, Failed, []string{"failed: kube-system/plugin-x"}},
		{"the label is gone", func(s *cluster.Snapshot) { delete(s.Nodes[0].Labels, "dramigrate.dev/allocation") },
			Failed, []string{"failed: label dramigrate.dev/allocation is absent, not dra"}},
		{"no slices", func(s *cluster.Snapshot) { s.Slices = nil },
			Failed, []string{"failed: deviceclass/gpu selects no device", "failed: driver gpu.nvidia.com publishes no ResourceSlice", "failed: missing GPU-1, GPU-2; unexpected none"}},
		{"a slice is missing", func(s *cluster.Snapshot) { s.Slices[0].Spec.Pool.ResourceSliceCount = 2 },
			Failed, []string{"failed: pool a-1 of driver gpu.nvidia.com has 1 of 2 slices"}},
		{"another GPU", func(s *cluster.Snapshot) {
			s.Slices[0].Spec.Devices[1].Attributes["uuid"] = resourcev1.DeviceAttribute{StringValue: new("GPU-9")}
		}, Failed, []string{"failed: missing GPU-2; unexpected GPU-9"}},
		{"nothing was recorded", func(s *cluster.Snapshot) { delete(s.Nodes[0].Annotations, "dramigrate.dev/state") },
			Unknown, []string{"unknown: which devices the node had before is not recorded", "unknown: no run has recorded it"}},
		{"the driver crashes", func(s *cluster.Snapshot) { s.Pods[0].Ready, s.Pods[0].Waiting = false, "CrashLoopBackOff" },
			Failed, []string{"failed: pod dra/driver-x is not ready CrashLoopBackOff"}},
		{"the driver has no pod", func(s *cluster.Snapshot) { s.Pods = nil },
			Failed, []string{"failed: daemonset/dra/driver has no pod on the node"}},
		{"a pod by the plugin", func(s *cluster.Snapshot) {
			s.Pods = append(s.Pods, cluster.Pod{Namespace: "default", Name: "old", UID: "o", Node: "a-1", Phase: corev1.PodRunning,
				Requests: []cluster.Request{{Container: "c", Resource: "nvidia.com/gpu", Count: 1}}})
		}, Failed, []string{"failed: default/old"}},
		{"closed", func(s *cluster.Snapshot) { s.Nodes[0].Spec.Taints = []corev1.Taint{gate.SwitchingTaint()} },
			Failed, []string{"failed: it carries the taint"}},
		{"no class", func(s *cluster.Snapshot) { s.Classes = nil }, Failed, []string{"failed: no DeviceClass carries nvidia.com/gpu"}},
		{"two classes", func(s *cluster.Snapshot) {
			second := *s.Classes[0].DeepCopy()
			second.Name = "second"
			s.Classes = append(s.Classes, second)
		}, Failed, []string{"failed: deviceclass/gpu and deviceclass/second both carry nvidia.com/gpu"}},
		{"pods could not be read", func(s *cluster.Snapshot) {
			s.Pods, s.Unknown = nil, []cluster.Unknown{{Part: cluster.PartPods, Reason: "forbidden"}}
		}, Unknown, []string{"unknown: pods could not be read", "unknown: pods could not be read", "unknown: pods could not be read", "unknown: pods could not be read"}},
		{"slices could not be read", func(s *cluster.Snapshot) {
			s.Slices, s.Unknown = nil, []cluster.Unknown{{Part: cluster.PartSlices, Reason: "forbidden"}}
		}, Unknown, []string{"unknown: resourceslices", "unknown: resourceslices", "unknown: resourceslices", "unknown: resourceslices"}},
		{"no node has devices", func(s *cluster.Snapshot) {
			s.Nodes[0].Labels, s.Nodes[0].Annotations, s.Slices = nil, nil, nil
		}, Failed, []string{"failed: deviceclass/gpu selects no device"}},
	} {
		t.Run(c.title, func(t *testing.T) {
			s := switched(t)
			c.change(s)
			v := Verify(t.Context(), s, target())
			got := bad(v)
			if v.Result != c.result || len(got) != len(c.want) {
				t.Fatalf("result %s, want %s; not OK:\n%s", v.Result, c.result, strings.Join(got, "\n"))
			}
			for i := range got {
				if !strings.Contains(got[i], c.want[i]) {
					t.Errorf("%q, want %q", got[i], c.want[i])
				}
			}
		})
	}
}

func TestVerifyAdd(t *testing.T) {
	v := Verify(t.Context(), switched(t), target())
	v.Add("a-1", Look{What: "canary", Result: Failed, Detail: "sees GPU-9"})
	if v.Result != Failed {
		t.Errorf("result %s after a failed canary, want failed", v.Result)
	}
}

func TestVerifyNothing(t *testing.T) {
	s := switched(t)
	v := Verify(t.Context(), s, Target{Pool: cluster.NodePool{Name: "cpu"}, Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com"})
	if v.Result != Unknown {
		t.Errorf("result %s of a pool without devices, want unknown", v.Result)
	}
}
