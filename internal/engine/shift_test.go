package engine

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// aNodeRun is the run of one closed node that has not been switched yet.
func aNodeRun(t *testing.T) (*nodeRun, *fake.Clientset) {
	t.Helper()
	node := aNode(stateOf(t, cluster.NodeState{Pool: "a", Run: "r5", Epoch: 5}))
	closeNode(node, false)
	client := newServer(t, node)
	p := newPatcher(client)
	p.Annotations = closedAnnotationKeys()
	e := &Engine{deps: Deps{Clock: clock.RealClock{}, Sink: func(event.Event) {}}, client: client}
	r := &poolRun{session: &session{Engine: e, id: "r5", plan: &plan.Plan{Gate: gate.OwnKey(), Pool: &plan.Pool{Name: "a"}}}, patcher: p}
	return &nodeRun{poolRun: r, ref: gpu7, expect: gate.Plugin}, client
}

// TestShiftAgain moves a node while the first PATCH comes to nothing: because the
// kubelet wrote a new status in between, or because the answer got lost after the
// server had done it. Neither is a change by somebody else.
func TestShiftAgain(t *testing.T) {
	for name, fail := range map[string]func(*fake.Clientset, clienttesting.Action) error{
		"somebody else wrote in between": func(*fake.Clientset, clienttesting.Action) error {
			return apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "gpu-7", errors.New("the object has been modified"))
		},
		"the answer got lost": func(c *fake.Clientset, a clienttesting.Action) error {
			// What the server would have done, by the reactors behind this one.
			for _, r := range c.ReactionChain[1:] {
				if !r.Handles(a) {
					continue
				}
				if done, _, err := r.React(a); err != nil {
					t.Error(err)
				} else if done {
					break
				}
			}
			return apierrors.NewServerTimeout(schema.GroupResource{Resource: "nodes"}, "patch", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, client := aNodeRun(t)
			tries := 0
			client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
				tries++
				if tries > 1 {
					return false, nil, nil
				}
				return true, nil, fail(client, a)
			})
			if err := n.shift(t.Context(), plan.StepPluginOff, gate.Switching, false, gate.Plugin); err != nil {
				t.Fatal(err)
			}
			node, err := client.CoreV1().Nodes().Get(t.Context(), "gpu-7", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := node.Labels[gate.AllocationLabel]; got != gate.ValueSwitching {
				t.Errorf("label %s is %q, want %q", gate.AllocationLabel, got, gate.ValueSwitching)
			}
			if n.expect != gate.Switching {
				t.Errorf("the guard expects %q, want %q", n.expect, gate.Switching)
			}
			if tries == 0 {
				t.Error("no PATCH was sent, so that none came to nothing")
			}
		})
	}
}

// TestShiftSeesForeignLabels refuses to move a node whose label somebody else moved.
func TestShiftSeesForeignLabels(t *testing.T) {
	n, _ := aNodeRun(t)
	n.expect = gate.DRA // this run had moved it; it is back at the plugin
	if err := n.shift(t.Context(), plan.StepDriverOff, gate.Switching, false, gate.DRA); err == nil {
		t.Error("the label was moved, want a refusal")
	}
}
