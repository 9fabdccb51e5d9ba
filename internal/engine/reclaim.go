package engine

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// reclaimTries bounds how often a run sets labels of one node again: whoever changes
// them more often means it.
const reclaimTries = 3

// setAgain is the run's answer to such a change.
const setAgain = "set it again"

// reclaim answers gate labels that somebody else has changed since the node was brought
// to a state. A vendor's switch is set again while the node is switched: its controller
// puts a default there when a label was dropped, and knows nothing of the run. Anything
// else ends the run with the node closed: the tool's own label, which nobody sets by
// accident; a node whose driver is being reloaded; and a switch that goes before the
// run has touched it.
func (n *nodeRun) reclaim(e *NodeEdit, want gate.State) ([]event.Event, error) {
	g := n.plan.Gate
	off := g.Drift(want, e.Node.Labels)
	if len(off) == 0 {
		return nil, nil
	}
	if busy := g.Busy(e.Node.Labels); busy != "" {
		return nil, fmt.Errorf("label %s: a vendor's controller has begun to work on the node; it stays closed, run again when that is done", busy)
	}
	own, known := gate.Switched(e.Node.Labels)
	if !known || own != want || want == gate.Plugin {
		return nil, fmt.Errorf("the labels of gate %s were changed by somebody else, and the node must be %q: %s", g.Name, want, theirs(e.Node, off))
	}
	if n.tries >= reclaimTries {
		return nil, fmt.Errorf("%s, and was set again %d times in this run: find out who sets it before you go on", theirs(e.Node, off), n.tries)
	}
	what := theirs(e.Node, off)
	setState(e, g, want)
	if deciding(g, off) {
		// The plugin may have come back: the kubelet's grace for it begins anew.
		e.State.PluginGoneAt, e.State.SettledAt = nil, nil
	}
	return []event.Event{event.ForeignChange{Stamp: n.stamp(), Node: n.ref.Name, What: what, Answer: setAgain}}, nil
}

// adopt finds the state of a node whose labels fit none, by the tool's own label and its
// record, and gives it the labels of that state: a vendor's controller has changed its
// switch since a run left the node.
func (n *nodeRun) adopt(e *NodeEdit) (gate.State, []event.Event, error) {
	g := n.plan.Gate
	own, known := gate.Switched(e.Node.Labels)
	rollback, marked := n.plan.Operation == plan.Rollback, e.State.Run != ""
	if !known || !marked && (own == gate.Plugin || !rollback) || own == gate.Plugin && !rollback {
		return "", nil, fmt.Errorf("its labels fit no state of gate %s: %s; see `dramigrate check`", g.Name, theirs(e.Node, g.Drift(own, e.Node.Labels)))
	}
	off := g.Drift(own, e.Node.Labels)
	what := theirs(e.Node, off)
	if deciding(g, off) && own != gate.Plugin {
		e.State.PluginGoneAt, e.State.SettledAt = nil, nil
	}
	setState(e, g, own)
	return own, []event.Event{event.ForeignChange{Stamp: n.stamp(), Node: n.ref.Name, What: what, Answer: setAgain}}, nil
}

// deciding says that a difference is more than one of what goes along with the switch.
func deciding(g gate.Gate, off []gate.Difference) bool {
	return slices.ContainsFunc(off, func(d gate.Difference) bool { return !slices.Contains(g.Companions, d.Label) })
}

// pluginCameBack says that labels were set again after the plugin had gone, so that the
// kubelet may remember it anew.
func (n *nodeRun) pluginCameBack() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state.PluginGoneAt == nil
}

// tell reports what was answered. The caller holds n.mu.
func (n *nodeRun) tell(ctx context.Context, answered []event.Event) {
	for _, ev := range answered {
		n.emit(ev)
		if c, ok := ev.(event.ForeignChange); ok {
			if c.Answer == setAgain {
				n.tries++
			}
			n.record(ctx, "Warning", "DramigrateForeignChange", "somebody else changed the node while it was being switched: "+c.What+"; "+c.Answer)
		}
	}
}

// theirs says what somebody else has made of the node's labels, and who, as far as the
// node tells. Of a label that was removed it does not.
func theirs(node *corev1.Node, off []gate.Difference) string {
	if len(off) == 0 {
		return fmt.Sprintf("label %s is %q", gate.AllocationLabel, node.Labels[gate.AllocationLabel])
	}
	out := ""
	for i, d := range off {
		if i > 0 {
			out += ", "
		}
		switch {
		case d.Have != "":
			out += fmt.Sprintf("label %s is %s now", d.Label, d.Have)
		case d.Present:
			out += fmt.Sprintf("label %s is empty now", d.Label)
		default:
			out += fmt.Sprintf("label %s is gone", d.Label)
		}
		if who := cluster.LabelWriter(node, d.Label, FieldManager); who != "" && d.Present {
			out += " (by " + who + ")"
		}
	}
	return out
}
