package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/jsonpatch"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// NodeReplacedError says that a node is not the machine that the plan was about:
// it was deleted and another one has joined under its name.
type NodeReplacedError struct {
	Node       string
	Want, Have types.UID
}

func (e *NodeReplacedError) Error() string {
	return fmt.Sprintf("node/%s: has UID %s; the plan was made for %s", e.Node, e.Have, e.Want)
}

// NodeEdit is what a change works on: a node as it was just read, and the tool's
// annotation on it.
type NodeEdit struct {
	// Node may be changed in spec.unschedulable, spec.taints, and in the labels and
	// annotations that the NodePatcher was made for; nothing else.
	Node *corev1.Node
	// State is the parsed annotation, nil if there is none. Pool, Run and Epoch are
	// written by the patcher; nil removes the annotation.
	State *cluster.NodeState
}

// NodePatcher writes to nodes in the name of one run. Each PATCH tests the
// resourceVersion and the former annotation, so that a run whose lock was taken
// over cannot change a node that the new run has marked.
type NodePatcher struct {
	Client kubernetes.Interface
	Clock  clock.Clock
	Pool   string
	Run    string
	Epoch  int64
	// Labels and Annotations are the keys that may be set and removed, besides
	// cluster.StateAnnotation.
	Labels, Annotations []string
}

// Take changes a node that this run has not marked yet, and marks it: one without
// the annotation, or one that an earlier run of the same pool has left (a lower
// epoch). It is also right for a node that this run has marked already.
func (p *NodePatcher) Take(ctx context.Context, node plan.NodeRef, change func(*NodeEdit) error) (*corev1.Node, error) {
	return p.patch(ctx, node, change, p.mayTake)
}

// Patch changes a node that this run has marked. If another run has marked it
// since, or the mark is gone, it gives a *FencedError.
func (p *NodePatcher) Patch(ctx context.Context, node plan.NodeRef, change func(*NodeEdit) error) (*corev1.Node, error) {
	return p.patch(ctx, node, change, p.isOurs)
}

func (p *NodePatcher) mayTake(name string, s *cluster.NodeState) error {
	if s == nil || s.Pool == p.Pool && (s.Epoch < p.Epoch || s.Epoch == p.Epoch && s.Run == p.Run) {
		return nil
	}
	return p.fenced(name, s)
}

func (p *NodePatcher) isOurs(name string, s *cluster.NodeState) error {
	if s != nil && s.Pool == p.Pool && s.Epoch == p.Epoch && s.Run == p.Run {
		return nil
	}
	return p.fenced(name, s)
}

func (p *NodePatcher) fenced(name string, s *cluster.NodeState) error {
	e := &FencedError{Object: "node/" + name, OwnRun: p.Run, OwnEpoch: p.Epoch}
	if s != nil {
		e.Run, e.Epoch = s.Run, s.Epoch
		if s.Pool != p.Pool {
			e.Pool = s.Pool
		}
	}
	return e
}

// patch reads the node, lets change work on it and sends the difference, again
// from the start if somebody else wrote in between or the answer got lost. It
// returns the node as it is then. Nothing is sent if there is no difference.
func (p *NodePatcher) patch(ctx context.Context, ref plan.NodeRef, change func(*NodeEdit) error, allowed func(string, *cluster.NodeState) error) (*corev1.Node, error) {
	nodes := p.Client.CoreV1().Nodes()
	var result *corev1.Node
	err := retry(ctx, p.Clock, func() (again bool, err error) {
		node, err := nodes.Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return transient(err), fmt.Errorf("node/%s: read: %w", ref.Name, err)
		}
		if ref.UID != "" && node.UID != ref.UID {
			return false, &NodeReplacedError{Node: ref.Name, Want: ref.UID, Have: node.UID}
		}
		state, err := cluster.ParseNodeState(node)
		if err != nil {
			return false, err
		}
		if err := allowed(ref.Name, state); err != nil {
			return false, err
		}
		patch, err := p.diff(node, state, change)
		if err != nil {
			return false, fmt.Errorf("node/%s: %w", ref.Name, err)
		}
		if patch == nil {
			result = node
			return false, nil
		}
		body, err := patch.Bytes()
		if err != nil {
			return false, fmt.Errorf("node/%s: %w", ref.Name, err)
		}
		result, err = nodes.Patch(ctx, ref.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
		switch {
		case err == nil:
			return false, nil
		case lostRace(err):
			// The server's own words tell nothing about a failed test.
			return true, fmt.Errorf("node/%s: patch: somebody else changed the node at the same time: %w", ref.Name, err)
		}
		return transient(err), fmt.Errorf("node/%s: patch: %w", ref.Name, err)
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// testFailed tells a JSON patch whose test failed from a node that the server finds
// invalid; both are answered with 422. Only the latter names causes
// (apiserver/pkg/endpoints/handlers/patch.go, applyJSPatch, v0.37.2).
func testFailed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusUnprocessableEntity {
		return false
	}
	d := status.Status().Details
	return d == nil || len(d.Causes) == 0
}

// diff is the patch for what change does to a node, nil if it does nothing.
func (p *NodePatcher) diff(node *corev1.Node, state *cluster.NodeState, change func(*NodeEdit) error) (jsonpatch.Patch, error) {
	edit := &NodeEdit{Node: node.DeepCopy(), State: state}
	if err := change(edit); err != nil {
		return nil, err
	}
	want := edit.Node
	if edit.State == nil {
		delete(want.Annotations, cluster.StateAnnotation)
	} else {
		edit.State.Pool, edit.State.Run, edit.State.Epoch = p.Pool, p.Run, p.Epoch
		value, err := edit.State.Encode()
		if err != nil {
			return nil, err
		}
		if want.Annotations == nil {
			want.Annotations = map[string]string{}
		}
		want.Annotations[cluster.StateAnnotation] = value
	}
	keys := append([]string{cluster.StateAnnotation}, p.Annotations...)
	if err := onlyTouches(node, want, p.Labels, keys); err != nil {
		return nil, err
	}
	var ops jsonpatch.Patch
	ops = append(ops, diffMap("/metadata/labels", node.Labels, want.Labels, p.Labels)...)
	ops = append(ops, diffMap("/metadata/annotations", node.Annotations, want.Annotations, keys)...)
	switch {
	case want.Spec.Unschedulable && !node.Spec.Unschedulable:
		ops = append(ops, jsonpatch.Add("/spec/unschedulable", true))
	case !want.Spec.Unschedulable && node.Spec.Unschedulable:
		ops = append(ops, jsonpatch.Remove("/spec/unschedulable"))
	}
	switch {
	case equality.Semantic.DeepEqual(want.Spec.Taints, node.Spec.Taints):
	case len(want.Spec.Taints) == 0:
		ops = append(ops, jsonpatch.Remove("/spec/taints"))
	default:
		ops = append(ops, jsonpatch.Add("/spec/taints", want.Spec.Taints))
	}
	if len(ops) == 0 {
		return nil, nil
	}
	return append(tests(node), ops...), nil
}

// tests pin a patch to the node as it was read. The server compares an absent
// member as null, but only if its parent is there (gopkg.in/evanphx/json-patch.v4,
// Patch.test, v4.13.0).
func tests(node *corev1.Node) jsonpatch.Patch {
	out := jsonpatch.Patch{
		jsonpatch.Test("/metadata/uid", node.UID),
		jsonpatch.Test("/metadata/resourceVersion", node.ResourceVersion),
	}
	path := jsonpatch.Path("/metadata/annotations", cluster.StateAnnotation)
	value, marked := node.Annotations[cluster.StateAnnotation]
	switch {
	case marked:
		return append(out, jsonpatch.Test(path, value))
	case len(node.Annotations) > 0:
		return append(out, jsonpatch.Test(path, nil))
	}
	return append(out, jsonpatch.Test("/metadata/annotations", nil))
}

// diffMap compares two maps at the given keys. An empty map is left out of the
// object, so that the first key has to bring the map along.
func diffMap(path string, from, to map[string]string, keys []string) jsonpatch.Patch {
	var out jsonpatch.Patch
	made := len(from) > 0
	for _, k := range keys {
		old, had := from[k]
		now, has := to[k]
		switch {
		case has && !made:
			out = append(out, jsonpatch.Add(path, map[string]string{k: now}))
			made = true
		case has && (!had || old != now):
			out = append(out, jsonpatch.Add(jsonpatch.Path(path, k), now))
		case had && !has:
			out = append(out, jsonpatch.Remove(jsonpatch.Path(path, k)))
		}
	}
	return out
}

// onlyTouches guards what others own on a node against a mistake of ours.
func onlyTouches(node, want *corev1.Node, labels, annotations []string) error {
	rest := want.DeepCopy()
	rest.Spec.Unschedulable, rest.Spec.Taints = node.Spec.Unschedulable, node.Spec.Taints
	rest.Labels = putBack(rest.Labels, node.Labels, labels)
	rest.Annotations = putBack(rest.Annotations, node.Annotations, annotations)
	if !equality.Semantic.DeepEqual(rest, node) {
		return errors.New("refused: the change touches a field that the tool does not own")
	}
	return nil
}

func putBack(have, old map[string]string, keys []string) map[string]string {
	out := maps.Clone(have)
	for _, k := range keys {
		if v, ok := old[k]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		} else {
			delete(out, k)
		}
	}
	return out
}
