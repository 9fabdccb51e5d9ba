package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/internal/faultproxy"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// openProbe is which of a migration's helper pods on a node looks at it before it is
// opened: they are the image's pull, the probe before the plugin is off, the one after
// it, and the canary.
const openProbe = 5

// TestApplyStopsAtTwoHands has a GPU end up in two hands on a node that apply has drained
// and holds closed, by people who go past the scheduler. By the API all is well when the
// node is asked: the plugin is gone again, and nothing is allocatable.
func TestApplyStopsAtTwoHands(t *testing.T) {
	t.Parallel()
	node := GPUNode("gpu-a-1", "gpu-a", 1)
	helper, commands, driver := nodeHelper(t, node)
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Nodes: []cluster.NodeSpec{node}, Helper: helper, Commands: commands})
	f.prepare()
	before := f.look(node.Name)
	tool, hands := f.twoHands(node.Name)

	args := apply("gpu-a", "--driver-root", driver, "--evict-unmanaged")
	r := f.runAs(tool, 6, args...)
	f.ok(hands())
	for _, want := range []string{"by the node's own word", "pod default/legacy, ", "pod default/explicit ", "end one of the two pods", "dramigrate apply gpu-a"} {
		if !strings.Contains(unwrapped(r.Stderr), want) {
			t.Errorf("the error does not say %q:\n%s", want, r)
		}
	}
	f.closed(node.Name)

	// Nothing but one pod's end is needed, and no more than the pool's name is said again.
	f.ok(f.gone("legacy"))
	f.run(0, again("apply", "--evict-unmanaged", "--soak", "0s", "--kubelet-grace", "1s")...)
	f.ok(f.RunWorkload(f.ctx, "train", "gpu-a", 1))
	f.onDRA("train", node.Name)
	f.ok(f.Client().AppsV1().Deployments("default").Delete(f.ctx, "train", metav1.DeleteOptions{}))
	if r := f.run(0, again("rollback")...); strings.Contains(r.Stderr, "hardware was not looked at") {
		t.Errorf("the way to the GPUs was not recalled:\n%s", r)
	}
	f.asBefore(node.Name, before)
}

// again is a command line as it is printed after a run: the verb and the pool.
func again(verb string, more ...string) []string {
	return slices.Concat([]string{verb, "gpu-a", "--yes"}, more, locked)
}

// twoHands is the tool on a cluster where the GPU of the node is given to two pods while
// the tool is about to look at it for the last time. hands says what failed of that.
func (f *fixture) twoHands(node string) (tool Tool, hands func() string) {
	f.Helper()
	var mu sync.Mutex
	pods, why := 0, "the tool did not come as far as its last probe"
	tool, _ = f.proxied(func(m faultproxy.Mutation) error {
		if m.Moment != faultproxy.Before || m.Method != "POST" || m.Path != "/api/v1/namespaces/"+ToolNamespace+"/pods" {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if pods++; pods == openProbe {
			why = f.give(node)
		}
		return nil
	})
	return tool, func() string {
		mu.Lock()
		defer mu.Unlock()
		return why
	}
}

// give gives the node's GPU to two pods: to one by a plugin that runs for a moment and
// then is gone, to the other by a claim. It is called outside the test's goroutine.
func (f *fixture) give(node string) string {
	plugin := manifests.PluginOfNodes(node).Pods[0]
	gpu := f.GPUs(node).UUIDs()[0]
	everywhere := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	legacy := manifests.WorkloadPod("default", "legacy", nil)
	legacy.Spec.NodeName, legacy.Spec.Tolerations = node, everywhere
	byClaim := claimFor(gpu)
	explicit := byClaim[len(byClaim)-1].(*corev1.Pod)
	explicit.Spec.Tolerations = everywhere

	until := func(cond func() string) string { return Eventually(f.ctx, patience, cond) }
	// The steps follow each other, and the first that fails ends it.
	for _, step := range []func() string{
		func() string { return f.make(plugin) },
		func() string { return until(func() string { return f.offered(node, gpu) }) },
		func() string { return f.make(legacy) },
		func() string { return until(func() string { return f.hasGPU("legacy", gpu) }) },
		func() string { return reason(f.delete(plugin.Namespace, plugin.Name)) },
		func() string { return until(func() string { return f.Allocatable(f.ctx, node, 0) }) },
		func() string { return f.make(byClaim...) },
		func() string { return until(func() string { return f.hasGPU("explicit", gpu) }) },
	} {
		if why := step(); why != "" {
			return why
		}
	}
	return ""
}

func reason(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

func (f *fixture) make(objects ...kruntime.Object) string { return reason(f.Apply(f.ctx, objects...)) }

// delete ends a pod, and returns when it is gone.
func (f *fixture) delete(namespace, name string) error {
	if err := f.Client().CoreV1().Pods(namespace).Delete(f.ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	why := Eventually(f.ctx, patience, func() string {
		_, err := f.Client().CoreV1().Pods(namespace).Get(f.ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return err.Error()
		}
		return "pod " + name + " is not gone"
	})
	if why != "" {
		return fmt.Errorf("%s", why)
	}
	return nil
}

func (f *fixture) gone(name string) error { return f.delete("default", name) }

// offered waits for the kubelet to offer exactly one device by plugins.
func (f *fixture) offered(node, gpu string) string {
	ids, err := f.Advertised(f.ctx, node)
	if err != nil || !slices.Equal(ids, []string{gpu}) {
		return fmt.Sprintf("node/%s offers %q (%v), want %s", node, ids, err, gpu)
	}
	return ""
}

// hasGPU waits for a pod that runs and sees exactly one GPU, the one that is named.
func (f *fixture) hasGPU(name, gpu string) string {
	pod, err := f.Client().CoreV1().Pods("default").Get(f.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	var sees []string
	if pod.Status.Phase == corev1.PodRunning {
		sees, err = f.Seen(f.ctx, pod)
	}
	if err != nil || !slices.Equal(sees, []string{gpu}) {
		return fmt.Sprintf("pod %s is %s and sees %q (%v), want %s: %s", name, pod.Status.Phase, sees, err, gpu, pod.Status.Message)
	}
	return ""
}
