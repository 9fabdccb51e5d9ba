package e2e

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

const (
	allocation = "dramigrate.dev/allocation"
	pluginSet  = "nvidia-device-plugin-daemonset"
)

// TestGPUOperator moves a pool whose plugin NVIDIA's GPU Operator runs. The operator
// labels nodes and puts its DaemonSet back when somebody edits it; nobody has to.
func TestGPUOperator(t *testing.T) {
	t.Parallel()
	plugin := manifests.PluginStatic()
	plugin.DaemonSet.Spec.Template.Spec.NodeSelector = map[string]string{deployPlugin: "true"}
	nodes := []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 1), GPUNode("gpu-a-2", "gpu-a", 1), GPUNode("gpu-b-1", "gpu-b", 1)}
	for i := range nodes {
		nodes[i].Labels[deployPlugin], nodes[i].Labels[deployValidator] = "true", "true"
	}
	nodes[1].Labels[deployValidator] = "false" // somebody's choice, which has to stay
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Plugin: plugin, Nodes: nodes})
	f.clusterPolicy("kube-system", pluginSet)
	flips := &flipper{left: map[string]int{}}
	operator := &Owner{Manager: "gpu-operator", Label: flips.label}
	f.ok(operator.Own(f.ctx, f.Client(), "kube-system", pluginSet))
	others, err := f.DaemonPodsOn(f.ctx, "kube-system", pluginSet, "gpu-b-1")
	f.ok(err)
	before := map[string]nodeIs{"gpu-a-1": f.look("gpu-a-1"), "gpu-a-2": f.look("gpu-a-2")}

	f.run(0, slices.Concat([]string{"prepare", "--yes", "--driver-manifests", f.DriverDir}, locked)...)
	f.ok(f.RunWorkload(f.ctx, "train", "gpu-a", 2))
	f.run(0, apply("gpu-a")...)
	f.ok(f.WorkloadReady(f.ctx, "train", 2))
	f.onDRA("train", "gpu-a-1", "gpu-a-2")
	for _, n := range []string{"gpu-a-1", "gpu-a-2"} {
		f.labelled(n, map[string]string{allocation: "dra", deployPlugin: "false", deployValidator: "false"})
	}
	f.run(0, "verify", "gpu-a")
	f.run(0, rollback("gpu-a")...)
	for node, was := range before {
		f.asBefore(node, was)
	}
	f.ok(f.WorkloadReady(f.ctx, "train", 2))

	// The operator takes the label back in mid-run, once while neither mechanism is on
	// the node and once while the driver's pod may land.
	flips.set("gpu-a-1", "switching", "dra")
	r := f.run(0, apply("gpu-a")...)
	if n := strings.Count(r.Stderr, "label "+deployPlugin+" is true now (by gpu-operator); set it again"); n != 2 {
		t.Errorf("%d changes of the label are told, want 2:\n%s", n, r.Stderr)
	}
	f.ok(f.WorkloadReady(f.ctx, "train", 2))
	f.onDRA("train", "gpu-a-1", "gpu-a-2")
	f.run(0, "verify", "gpu-a")

	// NFD loses the node's labels for a moment after the run, and the operator puts its
	// defaults there.
	f.patchLabels("nfd-master", "gpu-a-1", `{"`+deployPlugin+`":null,"`+deployValidator+`":null}`)
	f.ok(Eventually(f.ctx, patience, func() string { return f.Allocatable(f.ctx, "gpu-a-1", 1) }))
	r = f.run(3, "verify", "gpu-a")
	for _, want := range []string{"label " + deployPlugin + " is true (by gpu-operator), not false", "label " + deployValidator + " is true (by gpu-operator), not false", "ADVERTISED TWICE"} {
		if !strings.Contains(unwrapped(r.Stdout), want) {
			t.Errorf("verify does not say %q:\n%s", want, r)
		}
	}
	r = f.Tool.Run(f.ctx, "status", "gpu-a")
	if want := "`kubectl label node gpu-a-1 --overwrite " + deployPlugin + "=false " + deployValidator + "=false`"; !strings.Contains(unwrapped(r.Stdout), want) {
		t.Errorf("status does not say %q:\n%s", want, r)
	}
	f.run(0, apply("gpu-a")...)
	f.run(0, "verify", "gpu-a")
	f.run(0, rollback("gpu-a")...)
	for node, was := range before {
		f.asBefore(node, was)
	}
	f.run(0, "unprepare", "--yes")
	if n, err := operator.Reverts(); n > 0 || err != nil {
		t.Errorf("the operator has put its DaemonSet back %d times (%v): it was edited", n, err)
	}
	now, err := f.DaemonPodsOn(f.ctx, "kube-system", pluginSet, "gpu-b-1")
	f.ok(err)
	if !slices.Equal(now, others) {
		t.Errorf("the plugin of the other pool is %q, was %q", now, others)
	}
}

// flipper labels as the operator does, and now and then takes a label back that it has
// to leave alone.
type flipper struct {
	mu   sync.Mutex
	left map[string]int // "node value-of-the-own-key" → how often
}

func (l *flipper) set(node string, states ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range states {
		l.left[node+" "+s] = 1
	}
}

func (l *flipper) label(node *corev1.Node) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := node.Name + " " + node.Labels[allocation]
	if l.left[key] > 0 && node.Labels[deployPlugin] == "false" {
		l.left[key]--
		return map[string]string{deployPlugin: "true"}
	}
	return OperatorLabels(node)
}

// clusterPolicy installs the operator's CRD with one object of it, and has that own the
// DaemonSet.
func (f *fixture) clusterPolicy(namespace, set string) {
	f.Helper()
	f.ok(f.ApplyYAML(f.ctx, []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterpolicies.nvidia.com}
spec:
  group: nvidia.com
  scope: Cluster
  names: {kind: ClusterPolicy, listKind: ClusterPolicyList, plural: clusterpolicies, singular: clusterpolicy}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`)))
	client, err := dynamic.NewForConfig(f.RESTConfig())
	f.ok(err)
	policies := client.Resource(schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"})
	var policy *unstructured.Unstructured
	f.ok(Eventually(f.ctx, patience, func() string {
		var err error
		policy, err = policies.Create(f.ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "cluster-policy"},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err.Error() // until the new kind is served
		}
		return ""
	}))
	f.ok(f.ownedBy(f.ctx, namespace, set, metav1.OwnerReference{
		APIVersion: "nvidia.com/v1", Kind: "ClusterPolicy", Name: policy.GetName(), UID: policy.GetUID(), Controller: new(true),
	}))
}

func (f *fixture) ownedBy(ctx context.Context, namespace, set string, ref metav1.OwnerReference) error {
	ds, err := f.Client().AppsV1().DaemonSets(namespace).Get(ctx, set, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ds.OwnerReferences = []metav1.OwnerReference{ref}
	_, err = f.Client().AppsV1().DaemonSets(namespace).Update(ctx, ds, metav1.UpdateOptions{FieldManager: "gpu-operator"})
	return err
}

// unwrapped is what the tool has printed, in one line.
func unwrapped(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, " \\\n", "\n")), " ")
}

// labelled wants a node to have labels of these values.
func (f *fixture) labelled(node string, want map[string]string) {
	f.Helper()
	n, err := f.Client().CoreV1().Nodes().Get(f.ctx, node, metav1.GetOptions{})
	f.ok(err)
	for key, value := range want {
		if got, ok := n.Labels[key]; got != value || !ok {
			f.Errorf("node/%s: label %s is %q (%t), want %q", node, key, got, ok, value)
		}
	}
}

// patchLabels changes labels of a node as somebody else.
func (f *fixture) patchLabels(manager, node, labels string) {
	f.Helper()
	_, err := f.Client().CoreV1().Nodes().Patch(f.ctx, node, types.MergePatchType,
		[]byte(`{"metadata":{"labels":`+labels+`}}`), metav1.PatchOptions{FieldManager: manager})
	f.ok(err)
}
