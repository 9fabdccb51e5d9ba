package report

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// stepGroup are the steps on nodes of one kind.
type stepGroup struct {
	Title string
	Steps []plan.Step
}

// stepGroups are a plan's steps on nodes: one list, or in a move from one pool into
// another one for the new nodes and one for the old ones, those first that come first.
func stepGroups(p *plan.Plan) []stepGroup {
	var out []stepGroup
	for i, s := range p.NodeSteps {
		if i == 0 || s.Role != p.NodeSteps[i-1].Role {
			title := "Steps on each node, in order"
			if s.Role != "" {
				title = fmt.Sprintf("Steps on each %s node, in order", s.Role)
			}
			out = append(out, stepGroup{Title: title})
		}
		last := &out[len(out)-1]
		last.Steps = append(last.Steps, s)
	}
	return out
}

// batchRole is which nodes a batch has, as it stands before their number.
func batchRole(p *plan.Plan, b plan.Batch) string {
	if len(b.Nodes) == 0 || p.Into == nil {
		return ""
	}
	return string(p.RoleOf(b.Nodes[0])) + " "
}

// batchLead is what stands before the names of a batch's nodes.
func batchLead(p *plan.Plan, b plan.Batch) string {
	if role := batchRole(p, b); role != "" {
		return role + "nodes: "
	}
	return ""
}

// sideOf is where nodes of a move into another pool stand before it: closed, or by which
// mechanism they serve.
func sideOf(p *plan.Plan, c plan.NodeChange) string {
	switch {
	case len(c.Before.Taints) > 0:
		return neither
	case len(c.Nodes) > 0 && p.RoleOf(c.Nodes[0]) == cluster.RoleNew:
		return onDRA
	default:
		return onPlugin
	}
}

// targetOf is where a node stands after the run.
func targetOf(p *plan.Plan, node string) string {
	switch {
	case p.Into != nil && p.Leaves(node):
		return neither
	case p.Operation == plan.Rollback:
		return onPlugin
	default:
		return onDRA
	}
}

// pathOf says what becomes of a node.
func pathOf(p *plan.Plan, node, from string, batch int) string {
	switch {
	case p.Into == nil:
		return fmt.Sprintf("%s to %s in batch %d", nameOf(from), nameOf(targetOf(p, node)), batch)
	case p.Leaves(node):
		return fmt.Sprintf("left and closed in batch %d", batch)
	default:
		return fmt.Sprintf("opened in batch %d", batch)
	}
}
