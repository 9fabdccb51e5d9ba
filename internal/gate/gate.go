// Package gate knows who owns the device plugin and the DRA driver, and which node
// labels move a node between them. Every way of switching a node comes down to
// labels: flipping one restarts no pod on any other node, which an edit of a
// DaemonSet does.
package gate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
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
	// of a key means that the label must be absent. Each gate has AllocationLabel
	// among them, which places the driver and tells Switching from DRA.
	Labels map[State]map[string]string `json:"labels"`
	// Companions are those keys of Labels that go along with the plugin's switch. In
	// state Plugin any value of theirs will do, and a rollback puts back what was there.
	Companions []string `json:"companions,omitempty"`
	// Vendor says that the plugin's DaemonSets heed Labels as they are. Without it they
	// have no switch, and prepare gives them one by node affinity.
	Vendor bool `json:"vendor,omitempty"`
}

// StateOf reads the state from a node's labels; false if they fit none, as when
// somebody set a value of their own.
func (g Gate) StateOf(labels map[string]string) (State, bool) {
	for _, s := range []State{Plugin, Switching, DRA} {
		if len(g.deciding(g.Drift(s, labels))) == 0 {
			return s, true
		}
	}
	return "", false
}

// Switched reads the state from the tool's own label alone, which every gate sets:
// where a run has brought the node, whatever became of a vendor's labels since.
func Switched(labels map[string]string) (State, bool) { return OwnKey().StateOf(labels) }

// Difference is a gate label that is not what a state asks for. An empty value means
// that the label is absent, unless Present says that it is there and empty.
type Difference struct {
	Label, Want, Have string
	Present           bool
}

// Drift is how a node's labels differ from those of a state, sorted by label.
func (g Gate) Drift(s State, labels map[string]string) []Difference {
	var out []Difference
	for _, key := range slices.Sorted(maps.Keys(g.Labels[s])) {
		want := g.Labels[s][key]
		have, present := labels[key]
		if have == want && present == (want != "") || s == Plugin && slices.Contains(g.Companions, key) {
			continue
		}
		out = append(out, Difference{Label: key, Want: want, Have: have, Present: present})
	}
	return out
}

// deciding leaves out what goes along with the switch: with it as it should not be,
// the node still is in its state.
func (g Gate) deciding(list []Difference) []Difference {
	return slices.DeleteFunc(slices.Clone(list), func(d Difference) bool { return slices.Contains(g.Companions, d.Label) })
}

// Keys are all label keys that the gate sets in any state, sorted.
func (g Gate) Keys() []string {
	var out []string
	for _, labels := range g.Labels {
		out = slices.AppendSeq(out, maps.Keys(labels))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pausedFor is what NVIDIA's driver manager adds to the value of a label while it
// reloads the driver; it takes it away at the end (NVIDIA/k8s-driver-manager,
// cmd/driver-manager/main.go).
const pausedFor = "paused-for-"

// Busy is the gate label by which a vendor's controller says that it is at work on the
// node, as key=value; empty if there is none. Such a label must not be written.
func (g Gate) Busy(labels map[string]string) string {
	for _, key := range g.Keys() {
		if v := labels[key]; strings.Contains(v, pausedFor) {
			return key + "=" + v
		}
	}
	return ""
}

// Before are the labels to give a node that goes back to the plugin: what its record
// says was there, and for what that does not tell, those of state Plugin. nil means
// absent.
func (g Gate) Before(state *cluster.NodeState) map[string]*string {
	out := map[string]*string{}
	for key, value := range g.Labels[Plugin] {
		if out[key] = nil; value != "" {
			out[key] = &value
		}
		if state == nil {
			continue
		}
		if prior, recorded := state.Prior.Labels[key]; recorded {
			out[key] = prior
		}
	}
	return out
}

// With is the node as it will be in state s: its gate labels set, the tool's own
// taint gone. It is for asking where a DaemonSet would run. A node that no run has
// begun with is as the plugin knows it already.
func (g Gate) With(node *corev1.Node, s State) *corev1.Node {
	out := *node
	out.Labels = maps.Clone(node.Labels)
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	set := map[string]*string{}
	for key, value := range g.Labels[s] {
		if set[key] = nil; value != "" {
			set[key] = &value
		}
	}
	if s == Plugin {
		state, _ := cluster.ParseNodeState(node)
		if _, switched := node.Labels[AllocationLabel]; !switched && state == nil {
			set = nil
		} else {
			set = g.Before(state)
		}
	}
	for key, value := range set {
		if value == nil {
			delete(out.Labels, key)
		} else {
			out.Labels[key] = *value
		}
	}
	out.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), IsSwitchingTaint)
	return &out
}

// Of is the gate of a node: the one that its record names, else the one that the
// DaemonSets on it have, else the own key. known is false if the record names a gate
// that this version does not have.
func (i Inventory) Of(node *corev1.Node, resource string) (g Gate, known bool) {
	if state, err := cluster.ParseNodeState(node); err == nil && state != nil {
		g, known = Named(cmp.Or(state.Gate, OwnKeyName))
		return g, known
	}
	choice := i.For(resource, node)
	return choice[0].Gate, true
}
