// Package gate knows who owns the device plugin and the DRA driver, and which node
// labels move a node between them. Every way of switching a node comes down to
// labels: flipping one restarts no pod on any other node, which an edit of a
// DaemonSet does.
package gate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// State is where a node stands between the two mechanisms.
type State string

// The states. In Switching neither mechanism runs on the node.
const (
	Plugin    State = "plugin"
	Switching State = "switching"
	DRA       State = "dra"
)

// Gate is one way to move a node: the labels that a node has in each state. It is
// data, so that a new vendor's switch is one more row.
type Gate struct {
	// Name is "own-key" or the vendor switch's name.
	Name string `json:"name"`
	// Why says in one line why this gate was chosen.
	Why string `json:"why"`
	// Labels are, for each state, the labels that a node must have. An empty value
	// of a key means that the label must be absent.
	Labels map[State]map[string]string `json:"labels"`
}

// OwnKey is the gate that needs nothing but the DaemonSets' affinity: the plugin
// avoids every node with the tool's own label, the driver wants it with "dra".
func OwnKey() Gate {
	return Gate{
		Name: "own-key",
		Why:  "the plugin's DaemonSet has no switch of its own, so prepare gives it one by node affinity",
		Labels: map[State]map[string]string{
			Plugin:    {AllocationLabel: ""},
			Switching: {AllocationLabel: ValueSwitching},
			DRA:       {AllocationLabel: ValueDRA},
		},
	}
}

// Gates are all gates, the one that serves any cluster last.
func Gates() []Gate { return []Gate{OwnKey()} }

// Named finds a gate by its name.
func Named(name string) (Gate, bool) {
	for _, g := range Gates() {
		if g.Name == name {
			return g, true
		}
	}
	return Gate{}, false
}

// StateOf reads the state from a node's labels; false if they fit none, as when
// somebody set a value of their own.
func (g Gate) StateOf(labels map[string]string) (State, bool) {
	for _, s := range []State{Plugin, Switching, DRA} {
		if g.fits(labels, s) {
			return s, true
		}
	}
	return "", false
}

func (g Gate) fits(labels map[string]string, s State) bool {
	for key, want := range g.Labels[s] {
		if labels[key] != want {
			return false
		}
	}
	return true
}

// With is the node as it will be in state s: its gate labels set, the tool's own
// taint gone. It is for asking where a DaemonSet would run.
func (g Gate) With(node *corev1.Node, s State) *corev1.Node {
	out := *node
	out.Labels = maps.Clone(node.Labels)
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	for key, value := range g.Labels[s] {
		if value == "" {
			delete(out.Labels, key)
		} else {
			out.Labels[key] = value
		}
	}
	out.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), IsSwitchingTaint)
	return &out
}
