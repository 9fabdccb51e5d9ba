package engine

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// countingHelper says that no pod holds a device, and counts how often it was asked.
type countingHelper struct {
	helper
	probes int
}

func (h *countingHelper) Probe(context.Context, *corev1.Node, plan.StepID) (*nodeprobe.NodeReport, error) {
	h.probes++
	return &nodeprobe.NodeReport{ListCalled: true}, nil
}

// TestUnsettle runs a node that an earlier run has settled and that the plan has all the
// same: the kubelet is asked once, and the grace begins anew.
func TestUnsettle(t *testing.T) {
	state, asked := runSettled(t, func(n *corev1.Node) {
		// The plugin has left it a few minutes ago.
		n.Status.Capacity = corev1.ResourceList{testResource: resource.MustParse("1")}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	})
	long := time.Now().Add(-time.Hour + time.Minute)
	if state.SettledAt != nil || state.PluginGoneAt == nil || !state.PluginGoneAt.After(long) || state.OpenedAt == nil {
		t.Errorf("settled at %v, plugin gone at %v, opened at %v: want a node that has still to settle, from now", state.SettledAt, state.PluginGoneAt, state.OpenedAt)
	}
	if state.Run != "r5" || asked.probes != 1 {
		t.Errorf("the node is of run %s after %d probes, want r5 after 1", state.Run, asked.probes)
	}
}

// TestSettledStays runs a settled node that the plan has for another reason, such as a
// helper pod that was left: it has nothing to settle again.
func TestSettledStays(t *testing.T) {
	state, asked := runSettled(t, func(*corev1.Node) {})
	if state.SettledAt == nil || state.Run != "r1" || asked.probes != 0 {
		t.Errorf("settled at %v by run %s after %d probes, want it left as run r1 left it", state.SettledAt, state.Run, asked.probes)
	}
}

// runSettled runs a migration on a node that had settled an hour ago.
func runSettled(t *testing.T, change func(*corev1.Node)) (*cluster.NodeState, *countingHelper) {
	t.Helper()
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	node := aNode(stateOf(t, cluster.NodeState{Pool: "a", Selector: "pool=a", Operation: "migrate", Run: "r1", Epoch: 1,
		Resources: []string{testResource}, Advertised: []string{"GPU-a"}, PluginGoneAt: &long, OpenedAt: &long, SettledAt: &long}))
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[gate.AllocationLabel] = gate.ValueDRA
	node.Status.Allocatable = corev1.ResourceList{testResource: resource.MustParse("0")}
	change(node)
	published := slice(1, 1, time.Now(), "GPU-a")
	published.Spec.Pool.Name, published.Spec.NodeName = node.Name, &node.Name
	n, _ := aNodeRun(t)
	client := newServer(t, node, &published)
	n.Engine.client, n.patcher.Client = client, client
	n.plan.Operation, n.plan.Resource, n.plan.Resources, n.plan.Driver.Name = plan.Migrate, testResource, []string{testResource}, testDriver
	n.state = cluster.NodeState{}
	asked := &countingHelper{}
	n.helper = asked
	n.live = NewLive(client, clock.RealClock{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := n.live.Start(ctx, node.Name); err != nil {
		t.Fatal(err)
	}
	if err := n.run(ctx); err != nil {
		t.Fatal(err)
	}
	now, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	state, err := cluster.ParseNodeState(now)
	if err != nil {
		t.Fatal(err)
	}
	return state, asked
}

func TestInParts(t *testing.T) {
	for _, tt := range []struct {
		resource, id string
		parts        bool
	}{
		{"amd.com/gpu", "0000:0c:00.0", false}, {"amd.com/gpu", "amdgpu_xcp_3", true}, {testResource, "MIG-1", false},
	} {
		why := inParts(map[string][]string{tt.resource: {tt.id}}, []string{tt.resource})
		if (why != "") != tt.parts {
			t.Errorf("%s %s: %q", tt.resource, tt.id, why)
		}
	}
}

// Access to all of a node's devices is no device of its own.
func TestAdvertisedIDs(t *testing.T) {
	got := advertisedIDs(map[string][]string{"gpu.intel.com/i915": {"card1", "card0"}, "gpu.intel.com/i915_monitoring": {"all"}},
		[]string{"gpu.intel.com/i915", "gpu.intel.com/i915_monitoring"})
	if len(got) != 2 || got[0] != "card0" || got[1] != "card1" {
		t.Errorf("IDs %q, want card0 and card1", got)
	}
}
