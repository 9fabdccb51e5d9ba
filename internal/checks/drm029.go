package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm029() Check {
	return Check{
		Code:        "DRM029",
		Title:       "A node's gate labels have values that no run has set",
		Why:         "A gate's labels have three states. With labels of none of them a node belongs to neither mechanism, or to both, and no run knows what to put back.",
		Fix:         "Find out who sets the label, and take it away.",
		Sources:     []string{"the gate of this tool: label dramigrate.dev/allocation"},
		Unskippable: true,
		Operations:  []string{Migrate, Rollback},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartSlices}, // whose gate it is, and which nodes have devices
		Run: func(in Input) []Finding {
			var out []Finding
			for _, v := range in.seen() {
				if _, known := in.Gate.StateOf(v.Node.Labels); known || in.Gate.Busy(v.Node.Labels) != "" {
					continue // DRM060 is about a busy one
				}
				if f := in.noState(v); f != nil {
					f.Code, f.Object = "DRM029", "node/"+v.Node.Name
					out = append(out, *f)
				}
			}
			return out
		},
	}
}

// noState judges a node whose labels fit no state of the gate.
func (in Input) noState(v cluster.NodeView) *Finding {
	own, known := gate.Switched(v.Node.Labels)
	if !known {
		return &Finding{
			Severity: Blocker,
			Message:  fmt.Sprintf("label %s=%s is none of the gate's states: somebody else has set it", gate.AllocationLabel, v.Node.Labels[gate.AllocationLabel]),
			Remedy:   fmt.Sprintf("`kubectl label node %s %s-`", v.Node.Name, gate.AllocationLabel),
		}
	}
	off := in.Gate.Drift(own, v.Node.Labels)[0]
	state, _ := cluster.ParseNodeState(v.Node)
	switch {
	case in.Operation == Rollback && own == gate.Plugin && state == nil:
		return nil // a rollback leaves alone what no run has moved
	case state != nil && (own != gate.Plugin || in.Operation == Rollback), in.Operation == Rollback:
		return &Finding{Severity: Warning,
			Message: fmt.Sprintf("%s, and a run had left it as %s: somebody else has changed it; this run sets it again", have(off), orAbsent(off.Want)),
			Remedy:  fmt.Sprintf("find who sets it, or it is set so again after the run: `kubectl get node %s --show-managed-fields -o yaml`", v.Node.Name)}
	case own != gate.Plugin:
		return &Finding{Severity: Blocker,
			Message: fmt.Sprintf("%s, and no record says what it was before", have(off)),
			Remedy:  "put the node back first: " + words.Command("rollback", in.Pool.Name)}
	case off.Have == "" && off.Want != "" && !off.Present && !v.HasDevices(in.Resource, in.Driver) && shows(v.Node, in.Resource) == "":
		return nil // a node without GPUs, to which the vendor's controller gives no labels
	case off.Have == "" && off.Want != "":
		return &Finding{Severity: Unknown,
			Message: fmt.Sprintf("%s: whether the plugin is to run there is open until its controller sets it", have(off)),
			Remedy:  "see why the controller of gate " + in.Gate.Name + " does not label the node; plan again when it has, or take the node out of the pool"}
	default:
		return &Finding{Severity: Blocker,
			Message: fmt.Sprintf("%s: somebody else keeps the plugin off the node", have(off)),
			Remedy:  "take the node out of the pool, or let the plugin onto it first"}
	}
}

// have says what a label is.
func have(d gate.Difference) string {
	if d.Have == "" && d.Present {
		return "label " + d.Label + " is empty"
	}
	return "label " + d.Label + " is " + orAbsent(d.Have)
}

func orAbsent(value string) string {
	if value == "" {
		return "absent"
	}
	return value
}
