package simnode

import (
	"context"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// A world is a controller of node sim-0 with 2 GPUs whose caches are filled by
// hand, so that no test depends on when a watch delivers.
type world struct {
	*controller
	clock *clocktesting.FakeClock
	t     *testing.T
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	clk := clocktesting.NewFakeClock(start)
	c := newController(fake.NewClientset(objects...), clk, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(c.queue.ShutDown)
	n := Node{Name: "sim-0", GPUs: gpu.NewSet("sim-0", 2), Labels: map[string]string{"pool": "a"}}
	c.nodes["sim-0"] = &simulated{config: n, machine: newMachine(2, kubelet(), false, start)}
	node, err := c.register(t.Context(), n, "v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	indexers := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byNode: c.index})
	}
	c.pods, c.slices, c.nodeList = indexers(), indexers(), indexers()
	w := &world{controller: c, clock: clk, t: t}
	w.must(c.nodeList.Add(node))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// at decides at an offset from the start, with the cache as the API is then.
func (w *world) at(offset time.Duration) {
	w.t.Helper()
	w.clock.SetTime(start.Add(offset))
	pods, err := w.client.CoreV1().Pods("").List(w.t.Context(), metav1.ListOptions{})
	w.must(err)
	items := make([]any, len(pods.Items))
	for i := range pods.Items {
		items[i] = &pods.Items[i]
	}
	w.must(w.pods.Replace(items, ""))
	w.must(w.sync(w.t.Context(), "sim-0"))
	node, err := w.client.CoreV1().Nodes().Get(w.t.Context(), "sim-0", metav1.GetOptions{})
	w.must(err)
	w.must(w.nodeList.Update(node))
}

func (w *world) node() *corev1.Node {
	w.t.Helper()
	node, err := w.client.CoreV1().Nodes().Get(context.Background(), "sim-0", metav1.GetOptions{})
	w.must(err)
	return node
}

func TestRegisterKeepsWhatOthersWrote(t *testing.T) {
	w := newWorld(t)
	node := w.node()
	if node.Labels["type"] != "simulated" || node.Labels["pool"] != "a" || node.Status.NodeInfo.KubeletVersion != "v1.37.2" {
		t.Errorf("labels %v, version %s", node.Labels, node.Status.NodeInfo.KubeletVersion)
	}
	if _, has := node.Status.Capacity["nvidia.com/gpu"]; has {
		t.Error("the key is there before any plugin was")
	}

	node.Labels["pool"] = "b"
	node.Spec.Unschedulable = true
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	_, err := w.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	w.must(err)
	_, err = w.register(t.Context(), w.nodes["sim-0"].config, "v1.37.2")
	w.must(err)
	node = w.node()
	if node.Labels["pool"] != "b" || !node.Spec.Unschedulable {
		t.Errorf("labels %v, unschedulable %v: the second start has put the node back", node.Labels, node.Spec.Unschedulable)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			t.Errorf("Ready is %s", c.Status)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	w := newWorld(t)
	for _, offset := range []time.Duration{0, 10 * time.Second} {
		w.clock.SetTime(start.Add(offset))
		w.must(w.renew(t.Context(), w.node()))
		lease, err := w.client.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "sim-0", metav1.GetOptions{})
		w.must(err)
		if !lease.Spec.RenewTime.Time.Equal(start.Add(offset)) || *lease.Spec.LeaseDurationSeconds != 40 {
			t.Errorf("after %v: renewed at %v for %d s", offset, lease.Spec.RenewTime, *lease.Spec.LeaseDurationSeconds)
		}
	}
}

func TestPodRunsAndIsRemoved(t *testing.T) {
	p := pod("web", "example.com/web:1", corev1.PodPending)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	elsewhere := pod("elsewhere", "example.com/web:1", corev1.PodPending)
	elsewhere.Spec.NodeName = "real-0"
	w := newWorld(t, p, elsewhere)
	w.at(0)
	w.at(time.Second)
	pods := w.client.CoreV1().Pods("default")
	got, err := pods.Get(t.Context(), "web", metav1.GetOptions{})
	w.must(err)
	ready := map[corev1.PodConditionType]corev1.ConditionStatus{}
	for _, c := range got.Status.Conditions {
		ready[c.Type] = c.Status
	}
	if got.Status.Phase != corev1.PodRunning || ready[corev1.PodReady] != corev1.ConditionTrue || ready[corev1.PodScheduled] != corev1.ConditionTrue {
		t.Errorf("phase %s, conditions %v", got.Status.Phase, ready)
	}
	if len(got.Status.ContainerStatuses) != 1 || !got.Status.ContainerStatuses[0].Ready {
		t.Errorf("containers %v", got.Status.ContainerStatuses)
	}
	other, err := pods.Get(t.Context(), "elsewhere", metav1.GetOptions{})
	w.must(err)
	if other.Status.Phase != corev1.PodPending {
		t.Error("a pod of another node was started")
	}

	_, err = pods.Update(t.Context(), deleted(got, 30), metav1.UpdateOptions{})
	w.must(err)
	w.at(10 * time.Second)
	w.at(11 * time.Second)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	w.must(err)
	if len(list.Items) != 1 || list.Items[0].Name != "elsewhere" {
		t.Errorf("%d pods are left, want the other node's alone", len(list.Items))
	}
}

func TestPluginShowsInTheNodesStatus(t *testing.T) {
	w := newWorld(t, pod("plugin", pluginImage, corev1.PodRunning))
	w.at(0)
	w.at(time.Second)
	amounts := func() [2]string {
		s := w.node().Status
		capacity, allocatable := s.Capacity["nvidia.com/gpu"], s.Allocatable["nvidia.com/gpu"]
		return [2]string{capacity.String(), allocatable.String()}
	}
	if got := amounts(); got != [2]string{"2", "2"} {
		t.Errorf("capacity and allocatable %v, want 2 and 2", got)
	}
	w.must(w.client.CoreV1().Pods("default").Delete(t.Context(), "plugin", metav1.DeleteOptions{}))
	w.at(time.Minute)
	w.at(time.Minute + time.Second)
	if got := amounts(); got != [2]string{"2", "0"} {
		t.Errorf("capacity and allocatable %v, want 2 and 0", got)
	}
	w.at(6 * time.Minute)
	if _, has := w.node().Status.Allocatable["nvidia.com/gpu"]; !has {
		t.Error("the key has gone")
	}
	if got := amounts(); got != [2]string{"0", "0"} {
		t.Errorf("capacity and allocatable %v, want 0 and 0", got)
	}
}

func TestDriverShowsInSlices(t *testing.T) {
	w := newWorld(t, pod("driver", driverImage, corev1.PodRunning))
	list := func() []resourceapi.ResourceSlice {
		l, err := w.client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
		w.must(err)
		return l.Items
	}
	w.at(0)
	w.at(time.Second)
	w.at(2 * time.Second) // does not publish again
	got := list()
	if len(got) != 1 {
		t.Fatalf("%d slices, want 1", len(got))
	}
	s := got[0]
	if s.Spec.Driver != "gpu.nvidia.com" || *s.Spec.NodeName != "sim-0" || s.Spec.Pool.Name != "sim-0" || s.Spec.Pool.ResourceSliceCount != 1 {
		t.Errorf("slice %+v", s.Spec)
	}
	// Both the UUID form and the name by minor come with the driver's own devices.
	if len(s.Spec.Devices) != 2 || s.Spec.Devices[0].Name != "gpu-1" {
		t.Errorf("devices %v", s.Spec.Devices)
	}
	w.must(w.client.CoreV1().Pods("default").Delete(t.Context(), "driver", metav1.DeleteOptions{}))
	w.at(10 * time.Second)
	if len(list()) != 1 {
		t.Error("the slice went with the driver")
	}
	w.at(40 * time.Second)
	if len(list()) != 0 {
		t.Error("the slice is there 30 s after the driver went")
	}
}

func TestDeletedNodeStaysAway(t *testing.T) {
	w := newWorld(t, pod("plugin", pluginImage, corev1.PodRunning))
	w.must(w.nodeList.Delete(w.node()))
	w.must(w.client.CoreV1().Nodes().Delete(t.Context(), "sim-0", metav1.DeleteOptions{}))
	w.must(w.sync(t.Context(), "sim-0"))
	nodes, err := w.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	w.must(err)
	if len(nodes.Items) != 0 {
		t.Error("a node that was deleted is back")
	}
}
