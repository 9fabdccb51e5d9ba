package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
)

// quickGrace is more than the 20 s for which the quick kubelet remembers a plugin.
const quickGrace = 25 * time.Second

// forgotten is what a kubelet answers to DRA containers when it remembers a plugin's
// pod and not the plugin (pkg/kubelet/cm/devicemanager/manager.go, v1.37.2).
const forgotten = "endpoint not found in cache for a registered resource: nvidia.com/gpu"

// TestKubeletGrace lets a plugin-backed pod live on a node, migrates the node, lets
// the kubelet's grace for the plugin pass, and starts a new pod.
func TestKubeletGrace(t *testing.T) {
	for name, c := range map[string]struct {
		binary  func() string
		restart bool // of the kubelet, between the List call and the end of the grace
		broken  bool
	}{
		"cleared by the List call":        {binary: func() string { return binaries.tool }},
		"cleared after a kubelet restart": {binary: func() string { return binaries.tool }, restart: true},
		"broken without the List call":    {binary: func() string { return binaries.withoutList }, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, BenchOptions{Binary: c.binary(), Kubelet: cluster.KubeletQuick,
				Nodes: []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 1)}})
			f.outliveGrace(quickGrace, c.restart, c.broken)
		})
	}
}

// outliveGrace is the test itself; grace is a little more than the kubelet's.
func (f *fixture) outliveGrace(grace time.Duration, restart, broken bool) {
	f.Helper()
	f.ok(f.RunWorkload(f.ctx, "train", "gpu-a", 1))
	f.prepare()
	p, err := f.Tool.Start(f.ctx, apply("gpu-a", "--kubelet-grace", grace.String())...)
	f.ok(err)
	if restart {
		f.ok(Eventually(f.ctx, patience, func() string {
			print, err := f.Fingerprint(f.ctx, "gpu-a-1")
			f.ok(err)
			if !strings.Contains(print, "openedAt") {
				return "the node is not open yet"
			}
			return ""
		}))
		f.ok(f.RestartKubelet(f.ctx, "gpu-a-1"))
	}
	if r := p.Wait(); broken && r.Code == 6 && strings.Contains(unwrapped(r.Stderr), forgotten) {
		return // the machine is slow: the grace was over before the run's own canary came
	} else if r.Code != 0 {
		f.Fatal(r)
	}
	if restart && !strings.Contains(p.Stderr(), "kubelet restarted") {
		f.Errorf("the kubelet's restart was not seen:\n%s", p.Stderr())
	}
	// The kubelet has forgotten the plugin itself when the capacity is 0, too.
	f.ok(Eventually(f.ctx, grace+patience, func() string {
		n, err := f.Client().CoreV1().Nodes().Get(f.ctx, "gpu-a-1", metav1.GetOptions{})
		f.ok(err)
		if q := n.Status.Capacity[Resource]; !q.IsZero() {
			return "capacity is still " + q.String()
		}
		return ""
	}))
	f.ok(f.Client().CoreV1().Pods("default").DeleteCollection(f.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=train"}))
	if broken {
		f.ok(Eventually(f.ctx, patience, func() string { return f.refused("train") }))
		list, err := f.Client().CoreV1().Pods("default").List(f.ctx, metav1.ListOptions{LabelSelector: "app=train"})
		f.ok(err)
		for _, p := range list.Items {
			if p.DeletionTimestamp == nil {
				f.diagnosed(p.Name, "kubelet-remembers-plugin", 3, "gpu-a-1")
			}
		}
		return
	}
	f.ok(f.WorkloadReady(f.ctx, "train", 1))
	if n := f.onDRA("train", "gpu-a-1"); n != 1 {
		f.Errorf("%d pods on DRA, want 1", n)
	}
}

// TestLostUpdate is about a kubelet whose word that the plugin is gone does not arrive: it
// is said once, when the grace is over, and from then on the node offers devices that
// nobody serves. The run has to see that, and what it says has to help.
func TestLostUpdate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Nodes: []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 1)}})
	f.ok(f.RunWorkload(f.ctx, "train", "gpu-a", 1))
	f.prepare()
	f.ok(f.Apply(f.ctx, refuseZero()...))

	r := f.run(6, apply("gpu-a", "--kubelet-grace", quickGrace.String())...)
	_, rest, _ := strings.Cut(r.Stderr, "the kubelet's word that the plugin is gone was lost, and `kubectl patch node gpu-a-1 --subresource=status --type=merge -p '")
	patch, _, ok := strings.Cut(rest, "'`")
	if !ok {
		f.Fatalf("no command to give it:\n%s", r)
	}
	policy := refuseZero()
	f.ok(f.Client().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(f.ctx, policy[1].(*admissionv1.ValidatingAdmissionPolicyBinding).Name, metav1.DeleteOptions{}))
	if why := f.Allocatable(f.ctx, "gpu-a-1", 1); why != "" {
		f.Errorf("the kubelet has found its word again: %s", why)
	}
	f.ok(Eventually(f.ctx, patience, func() string { // until the server has heard that the policy is gone
		_, err := f.Client().CoreV1().Nodes().Patch(f.ctx, "gpu-a-1", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil {
			return err.Error()
		}
		return ""
	}))
	f.ok(Eventually(f.ctx, patience, func() string { return f.Allocatable(f.ctx, "gpu-a-1", 0) }))
	f.run(0, apply("gpu-a")...)
	f.run(0, "verify", "gpu-a")
}

// refuseZero keeps kubelets from saying that a resource has no capacity any more, which
// stands for an API server that is away at that moment.
func refuseZero() []kruntime.Object {
	const name = "no-zero"
	return []kruntime.Object{
		&admissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Update},
						Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes/status"}},
					},
				}}},
				Validations: []admissionv1.Validation{{
					Expression: fmt.Sprintf("!(%[1]q in object.status.capacity) || string(object.status.capacity[%[1]q]) != '0'", Resource),
				}},
			},
		},
		&admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		},
	}
}

// refused wants the workload's new pod to be refused by the kubelet for the plugin
// that it does not find.
func (f *fixture) refused(name string) string {
	list, err := f.Client().CoreV1().Pods("default").List(f.ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	f.ok(err)
	said := ""
	for _, p := range list.Items {
		for _, s := range p.Status.ContainerStatuses {
			if w := s.State.Waiting; w != nil && p.DeletionTimestamp == nil {
				if w.Reason == "CreateContainerConfigError" && strings.Contains(w.Message, forgotten) {
					return ""
				}
				said = fmt.Sprintf("pod %s waits: %s %s", p.Name, w.Reason, w.Message)
			} else if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				said = fmt.Sprintf("pod %s runs", p.Name)
			}
		}
	}
	return "no pod is refused for the forgotten plugin: " + said
}
