package gate

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// The node settled at 10:00.
func TestMetAgain(t *testing.T) {
	t.Parallel()
	settled := time.Date(2026, 9, 14, 10, 0, 0, 0, time.UTC)
	plugin := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "plugin"}}
	inv := Inventory{Plugins: []PluginDaemonSet{{DaemonSet: plugin, Role: DevicePlugin, Resources: []string{"nvidia.com/gpu", "nvidia.com/mig-1g.5gb"}}}}
	pod := func(set string, after time.Duration) []cluster.Pod {
		return []cluster.Pod{{Namespace: "kube-system", Name: set + "-x", Owner: cluster.Owner{Kind: "DaemonSet", Name: set}, Created: settled.Add(after)}}
	}
	for _, tt := range []struct {
		name                  string
		pods                  []cluster.Pod
		capacity, allocatable string
		resource              corev1.ResourceName
		status                time.Duration // of the kubelet, after 10:00
		want                  string
	}{
		{name: "nothing but the zero that stays", capacity: "0", allocatable: "0", status: time.Hour},
		{name: "no key at all", status: time.Hour},
		{name: "the plugin's pod came later", pods: pod("plugin", time.Minute), capacity: "0", allocatable: "0", want: "pod kube-system/plugin-x of the plugin has come since"},
		{name: "a pod of it from before", pods: pod("plugin", -time.Minute), capacity: "0", allocatable: "0"},
		{name: "another DaemonSet's pod", pods: pod("dns", time.Minute), capacity: "0", allocatable: "0"},
		{name: "it is advertised", capacity: "2", allocatable: "2", status: time.Minute, want: "allocatable nvidia.com/gpu is 2"},
		{name: "another of its resources", capacity: "7", allocatable: "7", resource: "nvidia.com/mig-1g.5gb", want: "allocatable nvidia.com/mig-1g.5gb is 7"},
		{name: "capacity alone, within the grace of the plugin that left before", capacity: "2", allocatable: "0", status: 5 * time.Minute},
		{name: "capacity alone, long after", capacity: "2", allocatable: "0", status: 7 * time.Minute, want: "capacity nvidia.com/gpu is 2: a plugin has left it a few minutes ago"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.resource == "" {
				tt.resource = "nvidia.com/gpu"
			}
			node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, LastHeartbeatTime: metav1.NewTime(settled.Add(tt.status))},
			}}}
			if tt.capacity != "" {
				node.Status.Capacity = corev1.ResourceList{tt.resource: resource.MustParse(tt.capacity)}
				node.Status.Allocatable = corev1.ResourceList{tt.resource: resource.MustParse(tt.allocatable)}
			}
			if got := inv.MetAgain(cluster.NodeView{Node: node, Pods: tt.pods}, "nvidia.com/gpu", settled); got != tt.want {
				t.Errorf("MetAgain = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWants(t *testing.T) {
	t.Parallel()
	expr := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"pool": "a", "arch": "amd64"}}}
	for _, tt := range []struct {
		name     string
		selector map[string]string
		terms    [][]corev1.NodeSelectorRequirement
		want     string
	}{
		{"it fits", map[string]string{"pool": "a"}, [][]corev1.NodeSelectorRequirement{{expr("arch", "In", "amd64")}}, ""},
		{"a node selector", map[string]string{"pool": "b", "gpu-mode": "dra"}, nil, "gpu-mode=dra pool=b"},
		{"an affinity", nil, [][]corev1.NodeSelectorRequirement{{expr("arch", "In", "amd64"), expr("gpu", "Exists"), expr("zone", "In", "x", "y"), expr("pool", "NotIn", "a")}},
			"gpu zone in (x,y) pool!=a"},
		{"the term that lacks the least", nil, [][]corev1.NodeSelectorRequirement{
			{expr("a", "Exists"), expr("b", "Exists")}, {}, {expr("nvidia.com/gpu.present", "In", "true")}, {expr("c", "Exists")}}, "nvidia.com/gpu.present=true"},
		{"one of the terms fits", nil, [][]corev1.NodeSelectorRequirement{{expr("a", "Exists")}, {expr("pool", "Exists")}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ds := &appsv1.DaemonSet{}
			ds.Spec.Template.Spec.NodeSelector = tt.selector
			if tt.terms != nil {
				sel := &corev1.NodeSelector{}
				for _, e := range tt.terms {
					sel.NodeSelectorTerms = append(sel.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: e})
				}
				ds.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: sel}}
			}
			got := ""
			for i, w := range Wants(ds, node) {
				if i > 0 {
					got += " "
				}
				got += w
			}
			if got != tt.want {
				t.Errorf("Wants = %q, want %q", got, tt.want)
			}
		})
	}
}
