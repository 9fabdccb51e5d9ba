package gate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

const (
	operatorKey  = "nvidia.com/gpu.deploy.device-plugin"
	validatorKey = "nvidia.com/gpu.deploy.operator-validator"
	gkeKey       = "gke-no-default-nvidia-gpu-device-plugin"
)

func TestGateOfADaemonSet(t *testing.T) {
	t.Parallel()
	operator := func(ds *appsv1.DaemonSet) {
		ds.OwnerReferences = []metav1.OwnerReference{{APIVersion: "nvidia.com/v1", Kind: "ClusterPolicy", Name: "cluster-policy"}}
	}
	on := func(ds *appsv1.DaemonSet) {
		ds.Spec.Template.Spec.NodeSelector = map[string]string{operatorKey: "true"}
	}
	addon := func(ds *appsv1.DaemonSet) {
		ds.Labels = map[string]string{"addonmanager.kubernetes.io/mode": "Reconcile"}
	}
	terms := func(requirements ...corev1.NodeSelectorRequirement) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) {
			var list []corev1.NodeSelectorTerm
			for _, r := range requirements {
				list = append(list, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}})
			}
			ds.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: list}}}
		}
	}
	optedOut := corev1.NodeSelectorRequirement{Key: gkeKey, Operator: corev1.NodeSelectorOpDoesNotExist}
	second := program{name: "dcgm", image: "acme/exporter", nodes: []string{"a"}}
	for _, tt := range []struct {
		name   string
		change []func(*appsv1.DaemonSet)
		beside []program
		other  func(*appsv1.DaemonSet) // of the DaemonSet beside
		want   string
		why    string
	}{
		{"nobody's", nil, nil, nil, "own-key", "no switch of its own"},
		{"the GPU Operator's", []func(*appsv1.DaemonSet){operator, on}, nil, nil, "gpu-operator", "ClusterPolicy"},
		{"the GPU Operator's, with others that go by the label", []func(*appsv1.DaemonSet){operator, on}, []program{second}, on, "gpu-operator", ""},
		{"the GPU Operator's without the switch", []func(*appsv1.DaemonSet){operator}, nil, nil, "own-key", "ClusterPolicy"},
		{"GKE's", []func(*appsv1.DaemonSet){addon, terms(optedOut)}, nil, nil, "gke", "addonmanager"},
		{"an add-on that heeds GKE's label in one of two terms", []func(*appsv1.DaemonSet){addon, terms(optedOut, corev1.NodeSelectorRequirement{Key: "x", Operator: corev1.NodeSelectorOpExists})}, nil, nil, "own-key", "add"},
		{"nobody's that heeds GKE's label", []func(*appsv1.DaemonSet){terms(optedOut)}, nil, nil, "own-key", ""},
		{"a chart with the operator's label", []func(*appsv1.DaemonSet){on}, nil, nil, "deploy-label", "no operator owns it"},
		{"a chart with the operator's label, by which something else goes", []func(*appsv1.DaemonSet){on}, []program{second}, on, "own-key", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := world(append([]program{nvidiaPlugin("a")}, tt.beside...), "a nvidia.com/gpu=1")
			for _, change := range tt.change {
				change(&s.DaemonSets[0])
			}
			if tt.other != nil {
				tt.other(&s.DaemonSets[1])
			}
			choices := Detect(s).For("nvidia.com/gpu", &s.Nodes[0])
			if len(choices) != 1 || choices[0].Gate.Name != tt.want || !strings.Contains(choices[0].Gate.Why, tt.why) {
				t.Errorf("gates %+v, want %s because of %q alone", choices, tt.want, tt.why)
			}
		})
	}
}

// TestGatesOfNodes wants a node to have the gates of the DaemonSets that land on it and
// of no others.
func TestGatesOfNodes(t *testing.T) {
	t.Parallel()
	s := world([]program{nvidiaPlugin("a"), {name: "second", labels: map[string]string{"k8s-app": "nvidia-gpu-device-plugin"}, mounts: []string{pluginsDir}, nodes: []string{"b"}}},
		"a nvidia.com/gpu=1", "b nvidia.com/gpu=1", "cpu")
	s.DaemonSets[0].OwnerReferences = []metav1.OwnerReference{{APIVersion: "nvidia.com/v1", Kind: "ClusterPolicy", Name: "p"}}
	s.DaemonSets[0].Spec.Template.Spec.NodeSelector = map[string]string{operatorKey: "true"}
	s.DaemonSets[1].Spec.Template.Spec.NodeSelector = map[string]string{"own": "yes"}
	s.Nodes[0].Labels = map[string]string{operatorKey: "true"}
	s.Nodes[1].Labels = map[string]string{"own": "yes"}
	inv := Detect(s)
	names := func(nodes ...*corev1.Node) (out []string) {
		for _, c := range inv.For("nvidia.com/gpu", nodes...) {
			out = append(out, c.Gate.Name)
		}
		return out
	}
	for _, tt := range []struct {
		name  string
		nodes []*corev1.Node
		want  []string
	}{
		{"the operator's node", []*corev1.Node{&s.Nodes[0]}, []string{"gpu-operator"}},
		{"the other's", []*corev1.Node{&s.Nodes[1]}, []string{"own-key"}},
		{"both", []*corev1.Node{&s.Nodes[0], &s.Nodes[1]}, []string{"gpu-operator", "own-key"}},
		{"a node without either", []*corev1.Node{&s.Nodes[2]}, []string{"own-key"}},
	} {
		if diff := cmp.Diff(tt.want, names(tt.nodes...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestVendorStates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		gate   string
		labels map[string]string
		want   State
		ok     bool
		busy   string
	}{
		{"gpu-operator", map[string]string{operatorKey: "true", validatorKey: "true"}, Plugin, true, ""},
		{"gpu-operator", map[string]string{operatorKey: "true"}, Plugin, true, ""}, // no validator: somebody's choice
		{"gpu-operator", map[string]string{operatorKey: "false", validatorKey: "false", AllocationLabel: "switching"}, Switching, true, ""},
		{"gpu-operator", map[string]string{operatorKey: "false", validatorKey: "true", AllocationLabel: "dra"}, DRA, true, ""},
		{"gpu-operator", map[string]string{operatorKey: "true", AllocationLabel: "dra"}, "", false, ""},
		{"gpu-operator", map[string]string{operatorKey: ""}, "", false, ""},
		{"gpu-operator", nil, "", false, ""},
		{"gpu-operator", map[string]string{operatorKey: "paused-for-driver-upgrade"}, "", false, operatorKey + "=paused-for-driver-upgrade"},
		{"gke", nil, Plugin, true, ""},
		{"gke", map[string]string{gkeKey: ""}, "", false, ""}, // DoesNotExist is about the key
		{"gke", map[string]string{gkeKey: "true", AllocationLabel: "dra"}, DRA, true, ""},
		{"gke", map[string]string{AllocationLabel: "dra"}, "", false, ""},
		{"own-key", map[string]string{AllocationLabel: ""}, "", false, ""},
	} {
		g, ok := Named(tt.gate)
		if !ok {
			t.Fatalf("no gate %s", tt.gate)
		}
		if got, known := g.StateOf(tt.labels); got != tt.want || known != tt.ok {
			t.Errorf("%s: StateOf(%v) = %q, %t, want %q, %t", tt.gate, tt.labels, got, known, tt.want, tt.ok)
		}
		if got := g.Busy(tt.labels); got != tt.busy {
			t.Errorf("%s: Busy(%v) = %q, want %q", tt.gate, tt.labels, got, tt.busy)
		}
	}
}

func TestBefore(t *testing.T) {
	t.Parallel()
	g, _ := Named(GPUOperatorName)
	recorded := &cluster.NodeState{Prior: cluster.Prior{Labels: map[string]*string{operatorKey: ptr.To("true"), validatorKey: nil, AllocationLabel: nil}}}
	if diff := cmp.Diff(recorded.Prior.Labels, g.Before(recorded)); diff != "" {
		t.Errorf("with the record (-want +got):\n%s", diff)
	}
	want := map[string]*string{operatorKey: ptr.To("true"), validatorKey: ptr.To("true"), AllocationLabel: nil}
	if diff := cmp.Diff(want, g.Before(nil)); diff != "" {
		t.Errorf("the record was lost (-want +got):\n%s", diff)
	}
	gke, _ := Named(GKEName)
	if diff := cmp.Diff(map[string]*string{gkeKey: nil, AllocationLabel: nil}, gke.Before(nil)); diff != "" {
		t.Errorf("GKE, the record was lost (-want +got):\n%s", diff)
	}
}

// TestHandOver wants the whole list of terms where the owner's tool replaces lists, and
// the DaemonSets that the same values move.
func TestHandOver(t *testing.T) {
	t.Parallel()
	s := world([]program{nvidiaPlugin("a"), {name: "gfd", nodes: []string{"a"}}, {name: "efa", nodes: []string{"a"}}}, "a nvidia.com/gpu=1")
	for i, release := range []string{"nvdp", "nvdp", "efa"} {
		s.DaemonSets[i].Labels = map[string]string{"helm.sh/chart": "nvidia-device-plugin-0.20.0"}
		s.DaemonSets[i].Annotations = map[string]string{"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": "gpu"}
	}
	ds := &s.DaemonSets[0]
	edit, err := Exclude(ds)
	if err != nil {
		t.Fatal(err)
	}
	h := HandOver(ds, OwnerOf(ds), edit, s.DaemonSets)
	if diff := cmp.Diff(map[string]any{"affinity": edit.WholeAfter}, h.Body); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"kube-system/gfd"}, h.Also); diff != "" {
		t.Errorf("moved as well (-want +got):\n%s", diff)
	}
	ds.Labels["helm.sh/chart"] = "dra-driver-nvidia-gpu-0.4.1"
	h = HandOver(ds, OwnerOf(ds), edit, s.DaemonSets)
	if diff := cmp.Diff(map[string]any{"kubeletPlugin": map[string]any{"affinity": edit.WholeAfter}}, h.Body); diff != "" {
		t.Errorf("values of the driver's chart (-want +got):\n%s", diff)
	}
	ds.Annotations["argocd.argoproj.io/tracking-id"] = "gpu:apps/DaemonSet:kube-system/x"
	h = HandOver(ds, OwnerOf(ds), edit, s.DaemonSets)
	if h.Body["kind"] != "DaemonSet" || !strings.Contains(h.Where, "Argo CD application gpu") || !strings.Contains(h.Where, "rendered from a chart") {
		t.Errorf("handed over to Argo CD: %s %v", h.Where, h.Body)
	}
}
