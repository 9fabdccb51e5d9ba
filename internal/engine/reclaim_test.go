package engine

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

const (
	operatorKey  = "nvidia.com/gpu.deploy.device-plugin"
	validatorKey = "nvidia.com/gpu.deploy.operator-validator"
)

// atOperator is the run of a node that the GPU Operator's gate has brought to a state.
func atOperator(t *testing.T, at gate.State) (*nodeRun, *NodeEdit) {
	t.Helper()
	n, _ := aNodeRun(t)
	g, ok := gate.Named(gate.GPUOperatorName)
	if !ok {
		t.Fatal("no gate of the GPU Operator")
	}
	n.plan.Gate, n.expect = g, at
	gone := metav1.Now()
	yes := "true"
	e := &NodeEdit{Node: aNode(nil), State: &cluster.NodeState{Pool: "a", Run: "r5", PluginGoneAt: &gone, SettledAt: &gone,
		Prior: cluster.Prior{Labels: map[string]*string{operatorKey: &yes, validatorKey: nil, gate.AllocationLabel: nil}}}}
	setState(e, g, at)
	return n, e
}

func TestReclaim(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		at     gate.State
		change map[string]*string
		who    string
		said   string // the event
		failed string // the error; empty if the labels are set again
		again  bool   // the kubelet's memory has to be cleared anew
	}{
		{"the operator takes its label back", gate.Switching, map[string]*string{operatorKey: new("true")}, "gpu-operator", "is true now (by gpu-operator)", "", true},
		{"NFD drops it", gate.DRA, map[string]*string{operatorKey: nil}, "", "label " + operatorKey + " is gone", "", true},
		{"it is emptied", gate.DRA, map[string]*string{operatorKey: new("")}, "", "is empty now", "", true},
		{"only the validator's", gate.DRA, map[string]*string{validatorKey: new("true")}, "", validatorKey + " is true now", "", false},
		{"the tool's own label", gate.DRA, map[string]*string{gate.AllocationLabel: nil}, "", "", gate.AllocationLabel + " is gone", false},
		{"before the run has touched it", gate.Plugin, map[string]*string{operatorKey: new("false")}, "", "", "is false now", false},
		{"the driver is being reloaded", gate.Plugin, map[string]*string{operatorKey: new("paused-for-driver-upgrade")}, "", "", "paused-for-driver-upgrade: a vendor's controller", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, e := atOperator(t, tt.at)
			setLabels(e.Node, tt.change)
			if tt.who != "" {
				e.Node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: tt.who,
					FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + operatorKey + `":{}}}}`)}}
			}
			events, err := n.reclaim(e, tt.at)
			if tt.failed != "" {
				if err == nil || !strings.Contains(err.Error(), tt.failed) {
					t.Errorf("error %v, want one with %q", err, tt.failed)
				}
				return
			}
			if err != nil || len(events) != 1 || !strings.Contains(events[0].(event.ForeignChange).What, tt.said) {
				t.Fatalf("events %+v, error %v, want one event with %q", events, err, tt.said)
			}
			if off := n.plan.Gate.Drift(tt.at, e.Node.Labels); len(off) > 0 {
				t.Errorf("the labels differ still: %+v", off)
			}
			if again := e.State.PluginGoneAt == nil && e.State.SettledAt == nil; again != tt.again {
				t.Errorf("the kubelet's memory is cleared anew: %t, want %t", again, tt.again)
			}
		})
	}
}

// TestReclaimIsBounded gives up on a label that somebody changes again and again.
func TestReclaimIsBounded(t *testing.T) {
	t.Parallel()
	n, e := atOperator(t, gate.DRA)
	for try := 1; ; try++ {
		e.Node.Labels[operatorKey] = "true"
		events, err := n.reclaim(e, gate.DRA)
		if err != nil {
			if try != reclaimTries+1 || !strings.Contains(err.Error(), "find out who") {
				t.Errorf("try %d: %v, want the error at try %d", try, err, reclaimTries+1)
			}
			return
		}
		if n.tries += len(events); try > reclaimTries {
			t.Fatalf("the label was set again %d times, want %d", try, reclaimTries)
		}
	}
}

// TestAdopt takes a node over whose vendor label was changed after a run.
func TestAdopt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		at        gate.State
		operation plan.Operation
		record    bool
		label     *string
		want      gate.State // empty: refused
	}{
		{"apply finds the plugin on again", gate.DRA, plan.Migrate, true, new("true"), gate.DRA},
		{"rollback finds the label gone", gate.Switching, plan.Rollback, true, nil, gate.Switching},
		{"rollback without the record", gate.DRA, plan.Rollback, false, new("true"), gate.DRA},
		{"apply without the record", gate.DRA, plan.Migrate, false, new("true"), ""},
		{"a node that was marked and not switched", gate.Plugin, plan.Rollback, true, nil, gate.Plugin},
		{"the same, forward", gate.Plugin, plan.Migrate, true, nil, ""},
		{"a node of somebody else's", gate.Plugin, plan.Rollback, false, new("false"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, e := atOperator(t, tt.at)
			n.plan.Operation = tt.operation
			setLabels(e.Node, map[string]*string{operatorKey: tt.label})
			if !tt.record {
				e.State = &cluster.NodeState{}
			}
			at, events, err := n.adopt(e)
			if tt.want == "" {
				if err == nil {
					t.Errorf("the node was taken over in state %q, want a refusal", at)
				}
				return
			}
			if err != nil || at != tt.want || len(events) != 1 {
				t.Fatalf("state %q, events %+v, error %v, want %q", at, events, err, tt.want)
			}
			if state, ok := n.plan.Gate.StateOf(e.Node.Labels); !ok || state != tt.want {
				t.Errorf("labels %v are of state %q, want %q", e.Node.Labels, state, tt.want)
			}
		})
	}
}

// TestGateLabelsComeBack moves a node there and back by each gate, from several former
// values.
func TestGateLabelsComeBack(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]map[string]string{
		gate.OwnKeyName:      {{}, {"other": "x"}},
		gate.GPUOperatorName: {{operatorKey: "true", validatorKey: "true"}, {operatorKey: "true"}, {operatorKey: "true", validatorKey: "false"}, {operatorKey: "true", validatorKey: ""}},
		gate.GKEName:         {{}, {"cloud.google.com/gke-accelerator": "nvidia-l4"}},
		gate.DeployLabelName: {{operatorKey: "true"}},
	} {
		g, ok := gate.Named(name)
		if !ok {
			t.Fatalf("no gate %s", name)
		}
		for _, labels := range before {
			node := aNode(nil)
			was := map[string]*string{}
			for k, v := range labels {
				was[k] = &v
			}
			setLabels(node, was)
			start := node.DeepCopy()
			e := &NodeEdit{Node: node, State: &cluster.NodeState{Prior: priorOf(node, g)}}
			for _, s := range []gate.State{gate.Switching, gate.DRA, gate.Switching} {
				setState(e, g, s)
				if at, ok := g.StateOf(node.Labels); !ok || at != s {
					t.Errorf("%s: labels %v are of state %q, want %q", name, node.Labels, at, s)
				}
			}
			setState(e, g, gate.Plugin)
			if len(node.Labels) != len(start.Labels) {
				t.Errorf("%s: labels %v, were %v", name, node.Labels, start.Labels)
			}
			for k, v := range start.Labels {
				if now, ok := node.Labels[k]; now != v || !ok {
					t.Errorf("%s: label %s is %q (%t), was %q", name, k, now, ok, v)
				}
			}
		}
	}
}
