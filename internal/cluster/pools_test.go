package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestPools(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		nodes []corev1.Node
		want  []NodePool
	}{
		{"no labels", []corev1.Node{node("a"), node("b", "team", "x")}, nil},
		{"GKE", []corev1.Node{node("b", "cloud.google.com/gke-nodepool", "gpu"), node("a", "cloud.google.com/gke-nodepool", "gpu"), node("c", "cloud.google.com/gke-nodepool", "cpu")},
			[]NodePool{
				{"cpu", "cloud.google.com/gke-nodepool=cpu", []string{"c"}},
				{"gpu", "cloud.google.com/gke-nodepool=gpu", []string{"a", "b"}},
			}},
		{"EKS by eksctl: two labels, one pool", []corev1.Node{
			node("a", "eks.amazonaws.com/nodegroup", "gpu", "alpha.eksctl.io/nodegroup-name", "gpu"),
			node("b", "eks.amazonaws.com/nodegroup", "gpu", "alpha.eksctl.io/nodegroup-name", "gpu"),
		}, []NodePool{{"gpu", "eks.amazonaws.com/nodegroup=gpu", []string{"a", "b"}}}},
		{"AKS: the old label and the new one", []corev1.Node{node("a", "agentpool", "gpu", "kubernetes.azure.com/agentpool", "gpu")},
			[]NodePool{{"gpu", "kubernetes.azure.com/agentpool=gpu", []string{"a"}}}},
		{"one name for different nodes", []corev1.Node{
			node("a", "eks.amazonaws.com/nodegroup", "gpu"),
			node("b", "karpenter.sh/nodepool", "gpu"),
		}, []NodePool{
			{"eks.amazonaws.com/nodegroup=gpu", "eks.amazonaws.com/nodegroup=gpu", []string{"a"}},
			{"karpenter.sh/nodepool=gpu", "karpenter.sh/nodepool=gpu", []string{"b"}},
		}},
		{"OpenShift: custom roles only", []corev1.Node{
			node("a", "node.openshift.io/os_id", "rhel", "node-role.kubernetes.io/worker", "", "node-role.kubernetes.io/gpu", ""),
			node("b", "node.openshift.io/os_id", "rhel", "node-role.kubernetes.io/worker", ""),
			node("c", "node.openshift.io/os_id", "rhel", "node-role.kubernetes.io/master", "", "node-role.kubernetes.io/control-plane", ""),
		}, []NodePool{{"gpu", "node-role.kubernetes.io/gpu", []string{"a"}}}},
		{"roles elsewhere are free text", []corev1.Node{node("a", "node-role.kubernetes.io/gpu", "")}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, Pools(tt.nodes)); diff != "" {
				t.Errorf("Pools (-want +got):\n%s", diff)
			}
		})
	}
}

func withState(n corev1.Node, s NodeState) corev1.Node {
	raw, err := s.Encode()
	if err != nil {
		panic(err)
	}
	n.Annotations = map[string]string{StateAnnotation: raw}
	return n
}

func TestSelectPool(t *testing.T) {
	t.Parallel()
	s := &Snapshot{Nodes: []corev1.Node{
		node("a", "karpenter.sh/nodepool", "gpu", "zone", "1"),
		node("b", "karpenter.sh/nodepool", "gpu", "zone", "2"),
		node("c", "eks.amazonaws.com/nodegroup", "twin"),
		node("d", "karpenter.sh/nodepool", "twin"),
		withState(node("e", "zone", "9"), NodeState{Pool: "renamed", Selector: "zone in (9)", Operation: "migrate", Run: "r", Epoch: 1}),
		node("f", "zone", "9"),
	}}
	for _, tt := range []struct {
		name           string
		pool, selector string
		want           NodePool
		err            string // a part of the message
	}{
		{"by name", "gpu", "", NodePool{"gpu", "karpenter.sh/nodepool=gpu", []string{"a", "b"}}, ""},
		{"by selector", "", "zone=1", NodePool{"zone=1", "zone=1", []string{"a"}}, ""},
		{"a well-known selector is the pool of that name", "", "karpenter.sh/nodepool==gpu", NodePool{"gpu", "karpenter.sh/nodepool=gpu", []string{"a", "b"}}, ""},
		{"and so is its set notation", "", "karpenter.sh/nodepool in (gpu)", NodePool{"gpu", "karpenter.sh/nodepool=gpu", []string{"a", "b"}}, ""},
		{"a part of a pool is another pool", "", "karpenter.sh/nodepool=gpu,zone=1", NodePool{"karpenter.sh/nodepool=gpu,zone=1", "karpenter.sh/nodepool=gpu,zone=1", []string{"a"}}, ""},
		{"a name for a selector", "mine", "zone=2", NodePool{"mine", "zone=2", []string{"b"}}, ""},
		{"an ambiguous name", "twin", "", NodePool{}, "eks.amazonaws.com/nodegroup=twin, karpenter.sh/nodepool=twin"},
		{"an ambiguous pool by its full name", "karpenter.sh/nodepool=twin", "", NodePool{"karpenter.sh/nodepool=twin", "karpenter.sh/nodepool=twin", []string{"d"}}, ""},
		{"by what a run wrote on its nodes", "renamed", "", NodePool{"renamed", "zone in (9)", []string{"e", "f"}}, ""},
		{"an unknown name", "nope", "", NodePool{}, "there is none"},
		{"a selector for nothing", "", "zone=3", NodePool{}, "selects no node"},
		{"a selector for everything", "", " ", NodePool{}, "every node"},
		{"a selector that is none", "", "zone=(", NodePool{}, "selector"},
		{"nothing", "", "", NodePool{}, "neither"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := SelectPool(s, tt.pool, tt.selector)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("SelectPool (-want +got):\n%s", diff)
			}
			switch {
			case tt.err == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("error %v, want one with %q", err, tt.err)
			}
		})
	}
}
