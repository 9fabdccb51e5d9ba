package engine

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

var gpu7 = plan.NodeRef{Name: "gpu-7", UID: "u7"}

func aNode(annotations map[string]string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-7", UID: "u7", Labels: map[string]string{"pool": "a"}, Annotations: annotations},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "theirs", Effect: corev1.TaintEffectNoSchedule}}},
	}
}

func stateOf(t *testing.T, s cluster.NodeState) map[string]string {
	t.Helper()
	if s.Operation == "" {
		s.Operation = "migrate"
	}
	v, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{cluster.StateAnnotation: v}
}

func newPatcher(client kubernetes.Interface) *NodePatcher {
	return &NodePatcher{Client: client, Clock: clock.RealClock{}, Pool: "a", Run: "r5", Epoch: 5,
		Labels: []string{cluster.AllocationLabel}, Annotations: []string{"autoscaler/hands-off"}}
}

// mark is a change as the first step makes it.
func mark(e *NodeEdit) error {
	if e.State == nil {
		e.State = &cluster.NodeState{Operation: "migrate"}
	}
	e.State.Phase = "mark"
	e.Node.Spec.Unschedulable = true
	e.Node.Spec.Taints = append(e.Node.Spec.Taints, corev1.Taint{Key: "ours", Effect: corev1.TaintEffectNoSchedule})
	if e.Node.Annotations == nil {
		e.Node.Annotations = map[string]string{}
	}
	e.Node.Annotations["autoscaler/hands-off"] = "true"
	return nil
}

func phase(name string) func(*NodeEdit) error {
	return func(e *NodeEdit) error {
		e.State.Phase = name
		return nil
	}
}

func patches(client *fake.Clientset) []clienttesting.PatchAction {
	var out []clienttesting.PatchAction
	for _, a := range client.Actions() {
		if p, ok := a.(clienttesting.PatchAction); ok {
			out = append(out, p)
		}
	}
	return out
}

func TestMarkIsOnePatch(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"bare node": nil, "annotated node": {"theirs": "kept"},
	} {
		t.Run(name, func(t *testing.T) {
			client := newServer(t, aNode(annotations))
			n, err := newPatcher(client).Take(t.Context(), gpu7, mark)
			if err != nil {
				t.Fatal(err)
			}
			if len(patches(client)) != 1 {
				t.Errorf("%d patches", len(patches(client)))
			}
			s, err := cluster.ParseNodeState(n)
			if err != nil || s.Pool != "a" || s.Run != "r5" || s.Epoch != 5 || s.Phase != "mark" {
				t.Errorf("state %+v, %v", s, err)
			}
			if !n.Spec.Unschedulable || len(n.Spec.Taints) != 2 || n.Spec.Taints[0].Key != "theirs" || n.Annotations["autoscaler/hands-off"] != "true" {
				t.Errorf("%+v %v", n.Spec, n.Annotations)
			}
			if annotations != nil && n.Annotations["theirs"] != "kept" {
				t.Errorf("a foreign annotation is lost: %v", n.Annotations)
			}
		})
	}
}

// The patch as it goes over the wire, for a node that carries nothing of ours.
func TestPatchPinsWhatWasRead(t *testing.T) {
	client := newServer(t, aNode(map[string]string{"theirs": "kept"}))
	if _, err := newPatcher(client).Take(t.Context(), gpu7, func(e *NodeEdit) error {
		e.State = &cluster.NodeState{Operation: "migrate", Phase: "mark"}
		e.Node.Spec.Unschedulable = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var ops []map[string]any
	if err := json.Unmarshal(patches(client)[0].GetPatch(), &ops); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": "u7"},
		{"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
		{"op": "test", "path": "/metadata/annotations/dramigrate.dev~1state", "value": nil},
		{"op": "add", "path": "/metadata/annotations/dramigrate.dev~1state",
			"value": `{"pool":"a","selector":"","operation":"migrate","run":"r5","epoch":5,"phase":"mark","prior":{"unschedulable":false}}`},
		{"op": "add", "path": "/spec/unschedulable", "value": true},
	}
	if !reflect.DeepEqual(ops, want) {
		t.Errorf("got %s", patches(client)[0].GetPatch())
	}
}

func TestPutEverythingBack(t *testing.T) {
	client := newServer(t, aNode(nil))
	p := newPatcher(client)
	before, err := client.CoreV1().Nodes().Get(t.Context(), "gpu-7", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Take(t.Context(), gpu7, func(e *NodeEdit) error {
		e.Node.Labels[cluster.AllocationLabel] = "switching"
		return mark(e)
	}); err != nil {
		t.Fatal(err)
	}
	after, err := p.Patch(t.Context(), gpu7, func(e *NodeEdit) error {
		delete(e.Node.Labels, cluster.AllocationLabel)
		delete(e.Node.Annotations, "autoscaler/hands-off")
		e.Node.Spec.Unschedulable = false
		e.Node.Spec.Taints = e.Node.Spec.Taints[:1]
		e.State = nil
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(after.Annotations) != 0 || !reflect.DeepEqual(after.Labels, before.Labels) || !reflect.DeepEqual(after.Spec, before.Spec) {
		t.Errorf("%v %v %+v", after.Annotations, after.Labels, after.Spec)
	}
	// The run has let the node go: it may not touch it again unless it takes it.
	if _, err := p.Patch(t.Context(), gpu7, phase("x")); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v", err)
	}
}

func TestNoDifferenceNoPatch(t *testing.T) {
	client := newServer(t, aNode(stateOf(t, cluster.NodeState{Pool: "a", Run: "r5", Epoch: 5, Phase: "drain"})))
	n, err := newPatcher(client).Patch(t.Context(), gpu7, phase("drain"))
	if err != nil || n.Name != "gpu-7" || len(patches(client)) != 0 {
		t.Errorf("%v, %d patches", err, len(patches(client)))
	}
}

func TestWhoMayWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		state       *cluster.NodeState
		take, patch bool
	}{
		"no mark":                 {nil, true, false},
		"ours":                    {&cluster.NodeState{Pool: "a", Run: "r5", Epoch: 5}, true, true},
		"an earlier run":          {&cluster.NodeState{Pool: "a", Run: "r4", Epoch: 4}, true, false},
		"an earlier epoch of us":  {&cluster.NodeState{Pool: "a", Run: "r5", Epoch: 4}, true, false},
		"a later run":             {&cluster.NodeState{Pool: "a", Run: "r6", Epoch: 6}, false, false},
		"another run, same epoch": {&cluster.NodeState{Pool: "a", Run: "r4", Epoch: 5}, false, false},
		"another pool":            {&cluster.NodeState{Pool: "b", Run: "r1", Epoch: 1}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var annotations map[string]string
			if tc.state != nil {
				annotations = stateOf(t, *tc.state)
			}
			for verb, want := range map[string]bool{"take": tc.take, "patch": tc.patch} {
				client := newServer(t, aNode(annotations))
				p := newPatcher(client)
				do := p.Take
				if verb == "patch" {
					do = p.Patch
				}
				_, err := do(t.Context(), gpu7, func(e *NodeEdit) error {
					e.State = &cluster.NodeState{Operation: "migrate", Phase: verb}
					return nil
				})
				if want && err != nil || !want && !errors.Is(err, ErrFenced) {
					t.Errorf("%s: %v", verb, err)
				}
				if !want && len(patches(client)) != 0 {
					t.Errorf("%s: a fenced run has sent a patch", verb)
				}
				if !want && tc.state != nil && !strings.Contains(err.Error(), tc.state.Run) {
					t.Errorf("%s: %q does not name the other run", verb, err)
				}
			}
		})
	}
}

// between is a change during whose first try somebody else does something: after
// the node was read and before the patch is sent.
func between(change func(*NodeEdit) error, do func()) func(*NodeEdit) error {
	done := false
	return func(e *NodeEdit) error {
		if !done {
			done = true
			do()
		}
		return change(e)
	}
}

func setNode(t *testing.T, client kubernetes.Interface, change func(*corev1.Node)) {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(context.Background(), "gpu-7", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(n)
	if _, err := client.CoreV1().Nodes().Update(context.Background(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestForeignWriteInBetweenIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t, aNode(nil))
		n, err := newPatcher(client).Take(t.Context(), gpu7, between(mark, func() {
			setNode(t, client, func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "late", Effect: corev1.TaintEffectNoExecute})
			})
		}))
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, taint := range n.Spec.Taints {
			keys = append(keys, taint.Key)
		}
		if !reflect.DeepEqual(keys, []string{"theirs", "late", "ours"}) || len(patches(client)) != 2 {
			t.Errorf("taints %v after %d patches", keys, len(patches(client)))
		}
	})
}

// The zombie: its lock was taken over while its patch was on the way.
func TestTakenOverInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t, aNode(stateOf(t, cluster.NodeState{Pool: "a", Run: "r5", Epoch: 5, Phase: "drain"})))
		_, err := newPatcher(client).Patch(t.Context(), gpu7, between(phase("open"), func() {
			next := &NodePatcher{Client: client, Clock: clock.RealClock{}, Pool: "a", Run: "r6", Epoch: 6}
			if _, err := next.Take(t.Context(), gpu7, phase("mark")); err != nil {
				t.Error(err)
			}
		}))
		var fenced *FencedError
		if !errors.As(err, &fenced) || fenced.Run != "r6" || fenced.Epoch != 6 || fenced.Object != "node/gpu-7" {
			t.Fatalf("got %v", err)
		}
		n, err := client.CoreV1().Nodes().Get(t.Context(), "gpu-7", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := cluster.ParseNodeState(n); err != nil || s.Run != "r6" || s.Phase != "mark" {
			t.Errorf("%+v %v", s, err)
		}
	})
}

// The server has done it, and the answer was lost: it must not be done twice.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t, aNode(nil))
		inner := client.ReactionChain
		lost := false
		client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if lost {
				return false, nil, nil
			}
			lost = true
			for _, r := range inner {
				if r.Handles(a) {
					if handled, _, err := r.React(a); handled {
						if err != nil {
							t.Error(err)
						}
						break
					}
				}
			}
			return true, nil, apierrors.NewTimeoutError("the answer is lost", 0)
		})
		n, err := newPatcher(client).Take(t.Context(), gpu7, func(e *NodeEdit) error {
			if !e.Node.Spec.Unschedulable { // as every step does: look, then act
				return mark(e)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(n.Spec.Taints) != 2 || len(patches(client)) != 1 {
			t.Errorf("%d taints, %d patches", len(n.Spec.Taints), len(patches(client)))
		}
	})
}

func TestPatchRetries(t *testing.T) {
	node := schema.GroupResource{Resource: "nodes"}
	for name, tc := range map[string]struct {
		err   error
		tries int
	}{
		"conflict":         {apierrors.NewConflict(node, "gpu-7", errors.New("modified")), conflictTries},
		"failed test":      {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value failed", 0, false), conflictTries},
		"server is away":   {apierrors.NewServiceUnavailable("away"), writeTries},
		"forbidden":        {apierrors.NewForbidden(node, "gpu-7", errors.New("no")), 1},
		"lock lost":        {&FenceError{Method: "PATCH", Cause: ErrLockLost}, 1},
		"the patch is bad": {apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "gpu-7", field.ErrorList{field.Required(field.NewPath("spec"), "x")}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newServer(t, aNode(nil))
				client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
				_, err := newPatcher(client).Take(t.Context(), gpu7, mark)
				if !errors.Is(err, tc.err) || len(patches(client)) != tc.tries || !strings.Contains(err.Error(), "node/gpu-7") {
					t.Errorf("%d tries: %v", len(patches(client)), err)
				}
			})
		})
	}
}

func TestPatchLeavesTheRestAlone(t *testing.T) {
	for name, change := range map[string]func(*corev1.Node){
		"a foreign label":      func(n *corev1.Node) { n.Labels["pool"] = "b" },
		"a new label":          func(n *corev1.Node) { n.Labels["x"] = "y" },
		"a foreign annotation": func(n *corev1.Node) { n.Annotations = map[string]string{"x": "y"} },
		"another spec field":   func(n *corev1.Node) { n.Spec.ProviderID = "x" },
		"the status":           func(n *corev1.Node) { n.Status.Phase = "x" },
	} {
		client := newServer(t, aNode(nil))
		_, err := newPatcher(client).Take(t.Context(), gpu7, func(e *NodeEdit) error {
			change(e.Node)
			return mark(e)
		})
		if err == nil || len(patches(client)) != 0 {
			t.Errorf("%s: %v, %d patches", name, err, len(patches(client)))
		}
	}
}

func TestReplacedNode(t *testing.T) {
	client := newServer(t, aNode(nil))
	_, err := newPatcher(client).Take(t.Context(), plan.NodeRef{Name: "gpu-7", UID: types.UID("older")}, mark)
	var replaced *NodeReplacedError
	if !errors.As(err, &replaced) || replaced.Have != "u7" || len(patches(client)) != 0 {
		t.Errorf("got %v", err)
	}
	if _, err = newPatcher(client).Take(t.Context(), plan.NodeRef{Name: "gpu-8"}, mark); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}
