package status

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/words"
)

// LabelDrift is a gate label that is not what the node's record says.
type LabelDrift struct {
	Label string `json:"label"`
	// Want is the value by the record, Have the one that the label has; an empty one
	// means that the label is absent.
	Want string `json:"want"`
	Have string `json:"have"`
	// By is the field manager that wrote it last; empty if the label is gone, or nothing
	// tells.
	By string `json:"by,omitempty"`
}

// String is the drift as a sentence's part.
func (d LabelDrift) String() string {
	return fmt.Sprintf("label %s is %s%s, the record says %s", d.Label, orAbsent(d.Have), d.writer(), orAbsent(d.Want))
}

func (d LabelDrift) writer() string {
	if d.By == "" {
		return ""
	}
	return " (by " + d.By + ")"
}

func orAbsent(value string) string {
	if value == "" {
		return "absent"
	}
	return value
}

// gateLabels fills in the labels of the node's gate, and how they have drifted.
func (g *gatherer) gateLabels(n *Node, node *corev1.Node) {
	own, known := g.inv.Of(node, g.o.Resource)
	if !known {
		n.gate = gate.OwnKey()
		n.Problem = fmt.Sprintf("its record names gate %s, which this version does not know", n.state.Gate)
		return
	}
	n.gate = own
	for _, key := range own.Keys() {
		if v, ok := node.Labels[key]; ok {
			if n.GateLabels == nil {
				n.GateLabels = map[string]string{}
			}
			n.GateLabels[key] = v
		}
	}
	if n.state != nil {
		n.Drift = drift(own, allowed(n.state), node)
	}
}

// allowed are the states in which the node's record says that it may be. A step writes
// its name and its labels in one PATCH; a run that goes on with a node finds it further
// on than the first steps would have left it.
func allowed(st *cluster.NodeState) []gate.State {
	if st.Role != "" { // a run leaves these labels alone
		return []gate.State{gate.Plugin, gate.Switching, gate.DRA}
	}
	if st.Operation == string(plan.Rollback) {
		switch plan.StepID(st.Phase) {
		case plan.StepDriverOff:
			return []gate.State{gate.Switching}
		case plan.StepPluginOn, plan.StepRestore:
			return []gate.State{gate.Plugin}
		}
		return []gate.State{gate.DRA, gate.Switching, gate.Plugin}
	}
	switch plan.StepID(st.Phase) {
	case plan.StepMark, plan.StepDrain, plan.StepProbeBefore:
		if st.PluginGoneAt == nil {
			return []gate.State{gate.Plugin, gate.Switching}
		}
		return []gate.State{gate.Plugin, gate.Switching, gate.DRA}
	case plan.StepPluginOff:
		if st.PluginGoneAt == nil {
			return []gate.State{gate.Switching}
		}
		return []gate.State{gate.Switching, gate.DRA}
	case plan.StepPodResourcesList:
		return []gate.State{gate.Switching, gate.DRA}
	}
	return []gate.State{gate.DRA}
}

// drift compares the labels with those of the allowed state that they come nearest to.
func drift(g gate.Gate, states []gate.State, node *corev1.Node) []LabelDrift {
	var nearest []LabelDrift
	for i, s := range states {
		var off []LabelDrift
		for _, d := range g.Drift(s, node.Labels) {
			off = append(off, LabelDrift{Label: d.Label, Want: d.Want, Have: d.Have, By: cluster.LabelWriter(node, d.Label, gate.FieldManager)})
		}
		if len(off) == 0 {
			return nil
		}
		if i == 0 || len(off) < len(nearest) {
			nearest = off
		}
	}
	return nearest
}

func joined(list []string) string { return strings.Join(list, ", ") }

// setAgain is how the labels of a drifted node are put right: by hand, or by the run
// that would do it anyway.
func (n *Node) setAgain() string {
	var args []string
	for _, d := range n.Drift {
		if d.Want == "" {
			args = append(args, d.Label+"-")
		} else {
			args = append(args, d.Label+"="+d.Want)
		}
	}
	return "then `kubectl label node " + n.Name + " --overwrite " + words.Shell(args...) +
		"`, or " + words.Command("apply", n.Pool) + ", which closes the node for it"
}
