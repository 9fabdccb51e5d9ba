package plan

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a value, as YAML, with a file that a person has read.
func golden(t *testing.T, name string, value any) {
	t.Helper()
	got, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// A small cluster: pool gpu-a of three nodes and pool gpu-b of one, with two GPUs on
// each, served by the static plugin manifest; a Deployment with one GPU a pod under
// a budget, and a web pod without one.
func testCluster() *cluster.Snapshot {
	s := &cluster.Snapshot{Identity: cluster.Identity{UID: "cluster-uid", ServerVersion: "v1.37.2"}}
	plugin := pluginDaemonSet()
	s.DaemonSets = []appsv1.DaemonSet{plugin}
	for _, name := range []string{"a-1", "a-2", "a-3", "b-1"} {
		s.Nodes = append(s.Nodes, gpuNode(name, "gpu-"+name[:1]))
	}
	for _, n := range s.Nodes {
		s.Pods = append(s.Pods, daemonPod(&plugin, n.Name, "4"))
	}
	s.Pods = append(s.Pods,
		gpuPod("train", "x1", "a-1"), gpuPod("train", "x2", "a-1"), gpuPod("train", "x3", "a-3"), gpuPod("train", "x4", "b-1"),
		cluster.Pod{Namespace: "default", Name: "web", UID: "web", Node: "a-2", Phase: corev1.PodRunning, Ready: true,
			Owner: cluster.Owner{Kind: "ReplicaSet", Name: "web-1"}})
	s.Budgets = []policyv1.PodDisruptionBudget{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 4, DesiredHealthy: 3, ExpectedPods: 4},
	}}
	return s
}

func gpuNode(name, pool string) corev1.Node {
	gpus := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{
			"eks.amazonaws.com/nodegroup": pool, "nvidia.com/gpu.present": "true"}},
		Status: corev1.NodeStatus{
			Capacity: gpus, Allocatable: gpus,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.37.2"},
		},
	}
}

func pluginDaemonSet() appsv1.DaemonSet {
	return appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nvidia-device-plugin-daemonset", UID: "plugin-uid",
			Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "4"}},
		Spec: appsv1.DaemonSetSpec{
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"name": "nvidia-device-plugin-ds"}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "ctr", Image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"}},
					Volumes: []corev1.Volume{{Name: "dp", VolumeSource: corev1.VolumeSource{
						HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/device-plugins"}}}},
				},
			},
		},
	}
}

func daemonPod(ds *appsv1.DaemonSet, node, generation string) cluster.Pod {
	return cluster.Pod{
		Namespace: ds.Namespace, Name: ds.Name + "-" + node, UID: types.UID(ds.Name + node), Node: node,
		Phase: corev1.PodRunning, Ready: true, Owner: cluster.Owner{Kind: "DaemonSet", Name: ds.Name, UID: ds.UID},
		Labels: map[string]string{"pod-template-generation": generation},
	}
}

func gpuPod(app, name, node string) cluster.Pod {
	return cluster.Pod{
		Namespace: "default", Name: name, UID: types.UID(name), Node: node, Phase: corev1.PodRunning, Ready: true,
		Labels:   map[string]string{"app": app},
		Owner:    cluster.Owner{Kind: "ReplicaSet", Name: app + "-1", UID: "rs"},
		Requests: []cluster.Request{{Container: "c", Resource: "nvidia.com/gpu", Count: 1}},
	}
}

// manifestFiles are a driver's manifests as a folder.
func manifestFiles() fstest.MapFS {
	return fstest.MapFS{
		"00-namespace.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: dra}\n")},
		"20-daemonset.yaml": {Data: []byte(`# the driver
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: driver
  namespace: dra
  labels: {app.kubernetes.io/managed-by: Helm}
spec:
  selector: {matchLabels: {dra-driver-nvidia-gpu-component: kubelet-plugin}}
  template:
    metadata: {labels: {dra-driver-nvidia-gpu-component: kubelet-plugin}}
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - {}
            - matchExpressions: [{key: nvidia.com/gpu.present, operator: In, values: ["true"]}]
            - matchExpressions: [{key: pci-10de, operator: Exists}]
      containers: [{name: gpus, image: "example.com/driver:1"}]
      volumes: [{name: r, hostPath: {path: /var/lib/kubelet/plugins_registry}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: driver, namespace: dra}
---
# only a comment
`)},
		"30-class.yaml": {Data: []byte(`apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  extendedResourceName: nvidia.com/gpu
  selectors: [{cel: {expression: device.driver == "gpu.nvidia.com"}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: mig.nvidia.com}
spec:
  selectors: [{cel: {expression: device.driver == "gpu.nvidia.com"}}]
`)},
		"README.md": {Data: []byte("not a manifest")},
	}
}

func readManifests(t *testing.T, files fstest.MapFS) *Manifests {
	t.Helper()
	m, err := ReadManifests(files)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func intent(op Operation) Intent {
	in := Intent{
		Operation: op, ToolVersion: "v0.0.0-test", Namespace: "dramigrate-system",
		Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com",
	}
	switch op {
	case Migrate, Rollback:
		in.Pool = cluster.NodePool{Name: "gpu-a", Selector: "eks.amazonaws.com/nodegroup=gpu-a", Nodes: []string{"a-1", "a-2", "a-3"}}
		in.Settings = Settings{
			MaxUnavailable: "50%", Drain: DrainGPU, DrainTimeout: metav1.Duration{Duration: 15 * time.Minute},
			HelperImage: "helper@sha256:1",
		}
	case Prepare:
		in.Settings = Settings{PluginRollout: RollingUpdate}
	}
	if op == Migrate {
		in.Settings.Soak = metav1.Duration{Duration: 30 * time.Second}
		in.Settings.KubeletGrace = metav1.Duration{Duration: DefaultKubeletGrace}
	}
	return in
}

func build(t *testing.T, in Intent, s *cluster.Snapshot) *Plan {
	t.Helper()
	p, err := Build(in, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// prepared is the cluster after prepare with manifestFiles and on-delete: the edits
// that the plan of prepare shows have been made.
func prepared(t *testing.T) (*cluster.Snapshot, *cluster.SharedRecord) {
	t.Helper()
	s := testCluster()
	placed, err := Place(readManifests(t, manifestFiles()), "nvidia.com/gpu")
	if err != nil {
		t.Fatal(err)
	}
	driver := *placed.Drivers[0]
	driver.UID = "driver-uid"
	plugin := &s.DaemonSets[0]
	original := plugin.DeepCopy()
	plugin.Annotations[appsv1.DeprecatedTemplateGeneration] = "5"
	plugin.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	plugin.Spec.Template.Spec.Affinity = excludedAffinity()
	s.DaemonSets = append([]appsv1.DaemonSet{driver}, s.DaemonSets...)
	ref := cluster.ObjectRef{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: plugin.Namespace, Name: plugin.Name, UID: plugin.UID}
	record := &cluster.SharedRecord{
		PreImages: []cluster.PreImage{
			{Object: ref, Path: "/spec/template/spec/affinity", Before: []byte("null"), After: mustJSON(t, plugin.Spec.Template.Spec.Affinity)},
			{Object: ref, Path: "/spec/updateStrategy", Before: mustJSON(t, original.Spec.UpdateStrategy), After: mustJSON(t, plugin.Spec.UpdateStrategy)},
		},
		HeldClass:    placed.HeldClass,
		DriverSource: readManifests(t, manifestFiles()).Digest,
	}
	for _, u := range placed.Objects {
		record.Created = append(record.Created, cluster.CreatedObject{ObjectRef: cluster.ObjectRef{
			APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), UID: "made"}})
	}
	return s, record
}

func excludedAffinity() *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "dramigrate.dev/allocation", Operator: corev1.NodeSelectorOpDoesNotExist}}}}}}}
}

// migrated marks a node as one that a run has brought to DRA.
func migrated(t *testing.T, s *cluster.Snapshot, name string, settled bool) {
	t.Helper()
	node, ok := s.Node(name)
	if !ok {
		t.Fatal("no node " + name)
	}
	opened := metav1.Unix(1000, 0)
	state := cluster.NodeState{Pool: "gpu-a", Selector: "eks.amazonaws.com/nodegroup=gpu-a", Operation: "migrate", Run: "r1",
		Epoch: 1, Phase: "open", Resources: []string{"nvidia.com/gpu"}, OpenedAt: &opened}
	if settled {
		state.SettledAt = &opened
	}
	text, err := state.Encode()
	if err != nil {
		t.Fatal(err)
	}
	node.Labels["dramigrate.dev/allocation"] = "dra"
	node.Annotations = map[string]string{"dramigrate.dev/state": text}
	node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := canonical(v)
	if err != nil {
		t.Fatal(fmt.Errorf("encode: %w", err))
	}
	return data
}
