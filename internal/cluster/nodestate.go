package cluster

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/dramigrate/dramigrate/internal/jsonerr"
)

// NodeState is the annotation StateAnnotation: what the tool is doing with a node,
// and what the node was like before, so that a rollback needs nothing else. It is
// written in the same PATCH as the change that it describes.
type NodeState struct {
	// Pool and Selector name the pool as the run that marked the node knew it.
	Pool     string `json:"pool"`
	Selector string `json:"selector"`
	// Operation is "migrate" or "rollback".
	Operation string `json:"operation"`
	// Run and Epoch fence the node: a run whose lease was taken over finds another
	// pair here and its PATCH fails.
	Run   string `json:"run"`
	Epoch int64  `json:"epoch"`
	// Phase is the step that was begun last.
	Phase string `json:"phase"`
	Prior Prior  `json:"prior"`
	// Resources are the plugin's extended resources on this node.
	Resources []string `json:"resources,omitempty"`
	// Advertised are the plugin's IDs of the devices that the kubelet advertised before
	// the node was switched, without the numbers of replicas.
	Advertised []string `json:"advertised,omitempty"`
	// PluginGoneAt is when the plugin's resources were first seen at zero: the
	// kubelet's grace for a plugin that left is counted from here.
	PluginGoneAt *metav1.Time `json:"pluginGoneAt,omitempty"`
	// OpenedAt is when pods could reach the node again.
	OpenedAt *metav1.Time `json:"openedAt,omitempty"`
	// SettledAt is when the kubelet's memory of the plugin was cleared for the last
	// time; nothing is left to do on the node then.
	SettledAt *metav1.Time `json:"settledAt,omitempty"`
	// Gate is the name of the gate by which the node was switched.
	Gate string `json:"gate,omitempty"`
	// Role is the node's part where workloads move to another pool, which Into names;
	// empty where the node itself is switched.
	Role Role     `json:"role,omitempty"`
	Into *PoolRef `json:"into,omitempty"`
	// Offered is how many of each resource the plugin offered when a node with RoleOld
	// was marked.
	Offered map[string]int64 `json:"offered,omitempty"`
	// RetiredAt is when a node that workloads have left was done with: it stays closed.
	RetiredAt *metav1.Time `json:"retiredAt,omitempty"`
}

// Prior is what a node was like before the tool marked it.
type Prior struct {
	Unschedulable bool `json:"unschedulable"`
	// Labels and Annotations hold, for each key that the tool sets, the value that
	// was there; nil means that the key was absent.
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]*string `json:"annotations,omitempty"`
}

// ParseNodeState reads the tool's annotation of a node. It returns nil without an
// error if the node carries none, and an error that names the node if it cannot be
// read: such a node must be looked at by a person.
func ParseNodeState(node *corev1.Node) (*NodeState, error) {
	raw, ok := node.Annotations[StateAnnotation]
	if !ok {
		return nil, nil
	}
	var s NodeState
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return nil, fmt.Errorf("node/%s: annotation %s: %w", node.Name, StateAnnotation, jsonerr.Again([]byte(raw), &s, err))
	}
	if s.Pool == "" || s.Operation == "" || s.Run == "" {
		return nil, fmt.Errorf("node/%s: annotation %s: has no pool, operation or run", node.Name, StateAnnotation)
	}
	// It stands in commands that people copy. A pool without a name goes by its selector.
	if _, err := labels.Parse(s.Pool); err != nil {
		return nil, fmt.Errorf("node/%s: annotation %s: pool %q is neither a name nor a selector", node.Name, StateAnnotation, s.Pool)
	}
	return &s, nil
}

// Encode is the annotation's value.
func (s NodeState) Encode() (string, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encode node state of run %s: %w", s.Run, err)
	}
	return string(b), nil
}
