package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// A pool of simulated nodes moves to the driver under a real control plane: the
// scheduler's rules are real, the kubelets' are not.
func TestSimulatedNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	const nodes, gpus = 3, 4
	options := cluster.Options{Kubelet: cluster.KubeletQuick, Log: t.Output()}
	for i := range nodes {
		options.SimNodes = append(options.SimNodes, cluster.NodeSpec{
			Name:   fmt.Sprintf("sim-%d", i),
			Labels: map[string]string{"pool": "sim", "nvidia.com/gpu.present": "true"},
			GPUs:   gpus,
		})
	}
	c, err := cluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	b := &simBench{T: t, Cluster: c}

	plugin := manifests.PluginStatic().DaemonSet
	b.must(c.Apply(t.Context(), plugin))
	b.untilNodes("allocatable is 4", func(n corev1.Node) bool { return b.allocatable(n) == "4" })
	work := manifests.Workload("default", "train", nodes*gpus, map[string]string{"pool": "sim"})
	b.must(c.Apply(t.Context(), work))
	b.untilReady("train", nodes*gpus)
	if n := b.mapped(); n != 0 {
		t.Errorf("%d pods are served by claims while the plugin is there", n)
	}

	b.scale("train", 0)
	b.must(c.Client().AppsV1().DaemonSets(plugin.Namespace).Delete(t.Context(), plugin.Name, metav1.DeleteOptions{}))
	b.untilNodes("allocatable is 0 and still there", func(n corev1.Node) bool { return b.allocatable(n) == "0" })

	b.must(c.Apply(t.Context(), manifests.DriverWithClass()...))
	b.until("each node has its devices in a slice", func() (bool, string) {
		n, devices := b.slices()
		return n == nodes && devices == nodes*gpus, fmt.Sprintf("%d slices with %d devices", n, devices)
	})
	b.scale("train", nodes*gpus)
	b.untilReady("train", nodes*gpus)
	if n := b.mapped(); n != nodes*gpus {
		t.Errorf("%d pods are served by claims, want all %d", n, nodes*gpus)
	}

	b.scale("train", 0)
	driver := manifests.DriverDaemonSet()
	b.must(c.Client().AppsV1().DaemonSets(driver.Namespace).Delete(t.Context(), driver.Name, metav1.DeleteOptions{}))
	b.until("all slices are gone", func() (bool, string) {
		n, _ := b.slices()
		return n == 0, fmt.Sprintf("%d slices", n)
	})
}

type simBench struct {
	*testing.T
	*cluster.Cluster
}

func (b *simBench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *simBench) until(what string, seen func() (bool, string)) {
	b.Helper()
	(&gpuBench{T: b.T}).until(what, seen)
}

func (b *simBench) untilNodes(what string, holds func(corev1.Node) bool) {
	b.Helper()
	b.until(what, func() (bool, string) {
		list, err := b.Client().CoreV1().Nodes().List(b.Context(), metav1.ListOptions{LabelSelector: "type=simulated"})
		b.must(err)
		for _, n := range list.Items {
			if !holds(n) {
				return false, fmt.Sprintf("node %s: %v of %v", n.Name, n.Status.Allocatable, n.Status.Capacity)
			}
		}
		return len(list.Items) > 0, fmt.Sprintf("%d nodes", len(list.Items))
	})
}

// allocatable is "absent" or the amount of nvidia.com/gpu.
func (b *simBench) allocatable(n corev1.Node) string {
	q, has := n.Status.Allocatable["nvidia.com/gpu"]
	if !has {
		return "absent"
	}
	return q.String()
}

func (b *simBench) untilReady(name string, want int32) {
	b.Helper()
	b.until(fmt.Sprintf("%d pods of %s are ready", want, name), func() (bool, string) {
		d := b.deployment(name)
		return d.Status.ReadyReplicas == want, fmt.Sprintf("%+v", d.Status)
	})
}

func (b *simBench) deployment(name string) *appsv1.Deployment {
	b.Helper()
	d, err := b.Client().AppsV1().Deployments("default").Get(b.Context(), name, metav1.GetOptions{})
	b.must(err)
	return d
}

// scale waits until no pod too many is left.
func (b *simBench) scale(name string, replicas int32) {
	b.Helper()
	api := b.Client().AppsV1().Deployments("default")
	b.must(wait.ExponentialBackoffWithContext(b.Context(), wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 6}, func(ctx context.Context) (bool, error) {
		s, err := api.GetScale(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		s.Spec.Replicas = replicas
		_, err = api.UpdateScale(ctx, name, s, metav1.UpdateOptions{})
		return err == nil, nil
	}))
	b.until(fmt.Sprintf("%s has no more than %d pods", name, replicas), func() (bool, string) {
		pods := b.pods(name)
		return len(pods) <= int(replicas), fmt.Sprintf("%d pods", len(pods))
	})
}

func (b *simBench) pods(name string) []corev1.Pod {
	b.Helper()
	list, err := b.Client().CoreV1().Pods("default").List(b.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	b.must(err)
	return list.Items
}

// mapped is how many pods of the workload are served by claims.
func (b *simBench) mapped() int {
	b.Helper()
	n := 0
	for _, p := range b.pods("train") {
		if p.Status.ExtendedResourceClaimStatus != nil {
			n++
		}
	}
	return n
}

// slices is how many slices there are and how many devices are in them.
func (b *simBench) slices() (n, devices int) {
	b.Helper()
	list, err := b.Client().ResourceV1().ResourceSlices().List(b.Context(), metav1.ListOptions{})
	b.must(err)
	for _, s := range list.Items {
		devices += len(s.Spec.Devices)
	}
	return len(list.Items), devices
}
