package engine

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// intoRun is the run of an operation on gpu-7, which has the role in the move of pool a
// into pool b.
func intoRun(t *testing.T, client *fake.Clientset, op plan.Operation, role cluster.Role, epoch int64) *nodeRun {
	t.Helper()
	p := newPatcher(client)
	p.Annotations, p.Epoch = closedAnnotationKeys(), epoch
	e := &Engine{deps: Deps{Clock: clock.RealClock{}, Sink: func(event.Event) {}}, client: client}
	of := &plan.Plan{
		Operation: op, Gate: gate.OwnKey(), Resource: "nvidia.com/gpu", Resources: []string{"nvidia.com/gpu"},
		Driver: plan.Driver{Name: "gpu.nvidia.com"},
		Pool:   &plan.Pool{Name: "a", Selector: "pool=a"}, Into: &plan.Pool{Name: "b", Selector: "pool=b"},
	}
	switch role {
	case cluster.RoleNew:
		of.Into.Nodes = []plan.NodeRef{gpu7}
	case cluster.RoleOld:
		of.Pool.Nodes = []plan.NodeRef{gpu7}
	}
	live := NewLive(client, clock.RealClock{})
	if err := live.Start(t.Context(), gpu7.Name); err != nil {
		t.Fatal(err)
	}
	r := &poolRun{session: &session{Engine: e, id: "r5", plan: of}, patcher: p}
	return r.node(gpu7, live)
}

func gpuSevenAndState(t *testing.T, client *fake.Clientset) (*corev1.Node, *cluster.NodeState) {
	t.Helper()
	node, err := client.CoreV1().Nodes().Get(t.Context(), gpu7.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	state, err := cluster.ParseNodeState(node)
	if err != nil {
		t.Fatal(err)
	}
	return node, state
}

// An old node is closed, left, and opened again as it was; between the two autoscalers
// may have it.
func TestOldNodeThereAndBack(t *testing.T) {
	was := aNode(map[string]string{"cluster-autoscaler.kubernetes.io/scale-down-disabled": "false", "theirs": "x"})
	was.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	client := newServer(t, was.DeepCopy())

	there := intoRun(t, client, plan.Migrate, cluster.RoleOld, 5)
	if err := there.mark(t.Context()); err != nil {
		t.Fatal(err)
	}
	node, state := gpuSevenAndState(t, client)
	if why := notClosed(node, false); why != "" || node.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] != "true" {
		t.Fatalf("%s; annotations %v, want it closed, and autoscalers kept away", why, node.Annotations)
	}
	if want := map[string]int64{"nvidia.com/gpu": 2}; state.Role != cluster.RoleOld || state.Into.Name != "b" || !maps.Equal(state.Offered, want) {
		t.Errorf("record %+v, want role, pool and what was offered", state)
	}
	if there.moved(state, node) {
		t.Error("a node that was only marked counts as left")
	}
	if err := there.retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	node, state = gpuSevenAndState(t, client)
	if why := notClosed(node, false); why != "" || !state.Retired() || !there.moved(state, node) {
		t.Fatalf("%s; record %+v, want it closed and left", why, state)
	}
	if got := node.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"]; got != "false" {
		t.Errorf("the autoscaler's annotation is %q, want what it was", got)
	}
	if _, kept := node.Annotations["karpenter.sh/do-not-disrupt"]; kept {
		t.Error("Karpenter is kept away from a node that was left")
	}

	back := intoRun(t, client, plan.Rollback, cluster.RoleOld, 6)
	if err := back.mark(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := back.restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	node, state = gpuSevenAndState(t, client)
	if state != nil || !back.moved(state, node) {
		t.Errorf("record %+v, want none", state)
	}
	for what, pair := range map[string][2]any{"spec": {was.Spec, node.Spec}, "annotations": {was.Annotations, node.Annotations}, "labels": {was.Labels, node.Labels}} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-before +after):\n%s", what, diff)
		}
	}
}

// A node that was opened with fewer devices than it had would take pods that wait.
func TestOldNodeWaitsForItsPlugin(t *testing.T) {
	n := &nodeRun{role: cluster.RoleOld, poolRun: &poolRun{}, state: cluster.NodeState{Offered: map[string]int64{"nvidia.com/gpu": 2}}}
	v := cluster.NodeView{Node: aNode(nil)}
	for offered, want := range map[string]string{"1": "allocatable nvidia.com/gpu is 1 of 2", "2": "", "3": ""} {
		v.Node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(offered)}
		if got := n.offeredAgain(v); got != want {
			t.Errorf("%s offered: %q, want %q", offered, got, want)
		}
	}
}

// The record of a node was lost: its taint tells that a run has cordoned it.
func TestOldNodeWithoutRecord(t *testing.T) {
	node := aNode(nil)
	closeNode(node, false)
	client := newServer(t, node)
	n := intoRun(t, client, plan.Rollback, cluster.RoleOld, 5)
	if err := n.mark(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, state := gpuSevenAndState(t, client); state.Prior.Unschedulable {
		t.Error("the node would stay cordoned")
	}
}

// A new node has the label of a switched one and no record, which in a move in place is
// nobody's; here it is how the cloud has made it, and it stays so.
func TestNewNode(t *testing.T) {
	made := aNode(nil)
	made.Labels[gate.AllocationLabel] = gate.ValueDRA
	client := newServer(t, made.DeepCopy())
	if err := intoRun(t, client, plan.Migrate, "", 5).mark(t.Context()); err == nil {
		t.Error("a node without a role was taken")
	}
	n := intoRun(t, client, plan.Migrate, cluster.RoleNew, 5)
	if err := n.mark(t.Context()); err != nil {
		t.Fatal(err)
	}
	node, state := gpuSevenAndState(t, client)
	if why := notClosed(node, false); why != "" || state.Role != cluster.RoleNew || len(state.Offered) > 0 {
		t.Errorf("%s; record %+v, want it closed with its role", why, state)
	}
	if diff := cmp.Diff(made.Labels, node.Labels); diff != "" {
		t.Errorf("labels (-before +after):\n%s", diff)
	}

	// A run that opened it and was killed: the next has nothing to do there; another
	// pool's run must not take it.
	if _, err := n.patcher.Patch(t.Context(), gpu7, func(e *NodeEdit) error {
		now := metav1.Unix(1, 0)
		e.State.OpenedAt = &now
		openNode(e.Node, e.State.Prior)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	node, state = gpuSevenAndState(t, client)
	if !n.moved(state, node) {
		t.Errorf("record %+v, want that nothing is left to do", state)
	}
	other := intoRun(t, client, plan.Migrate, cluster.RoleNew, 9)
	other.patcher.Pool = "c"
	if err := other.mark(t.Context()); err == nil || !strings.Contains(err.Error(), "pool a") {
		t.Errorf("%v, want that it is pool a's", err)
	}
}

// A node without the driver, or with a plugin beside it, is not opened.
func TestNewNodeServesByDriverAlone(t *testing.T) {
	n := &nodeRun{role: cluster.RoleNew, poolRun: &poolRun{session: &session{plan: &plan.Plan{
		Gate: gate.OwnKey(), Resources: []string{"nvidia.com/gpu"}, Driver: plan.Driver{Name: "gpu.nvidia.com"}}}}}
	v := cluster.NodeView{Node: aNode(nil)}
	if why := n.switched(v); !strings.Contains(why, "no ResourceSlice") {
		t.Errorf("%q, want that slices are missing", why)
	}
	s := sliceOf("s", "gpu-7", "gpu-7")
	s.Spec.Pool.ResourceSliceCount = 1
	s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: "gpu-0"})
	v.Slices = append(v.Slices, *s)
	if why := n.switched(v); why != "" {
		t.Errorf("%q, want that it serves", why)
	}
	v.Node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	if why := n.switched(v); !strings.Contains(why, "allocatable nvidia.com/gpu is still 1") {
		t.Errorf("%q, want that a plugin offers a device", why)
	}
}
