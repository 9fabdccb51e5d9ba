package status

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

// rollbackInto judges whether the workloads could come back from another pool: old nodes
// have to be there, and what the plugin offered on them.
func (g *gatherer) rollbackInto(p cluster.NodePool, into string, back []*Node) *Rollback {
	left := slices.ContainsFunc(p.Nodes, func(name string) bool {
		node, ok := g.s.Node(name)
		if !ok {
			return false
		}
		mark, err := cluster.ParseNodeState(node)
		return err == nil && (mark == nil || mark.Role == cluster.RoleOld)
	})
	out := &Rollback{Result: OK, Nodes: len(back)}
	if !left {
		out.Result, out.Why = Failed, []string{"no node of the pool is left to go back to from pool " + into}
		return out
	}
	for _, n := range back {
		node, ok := g.s.Node(n.Name)
		if !ok || n.state == nil {
			continue
		}
		for _, r := range slices.Sorted(maps.Keys(n.state.Offered)) {
			if now, _ := (cluster.NodeView{Node: node}).Allocatable(r); now < n.state.Offered[r] {
				out.Result = Failed
				out.Why = append(out.Why, fmt.Sprintf("the plugin offers %d of %s on %s, and offered %d before", now, r, n.Name, n.state.Offered[r]))
			}
		}
	}
	return out
}

// left says that a node is one that workloads leave for another pool.
func left(n cluster.NodeView) bool {
	mark, err := cluster.ParseNodeState(n.Node)
	return err == nil && mark != nil && (mark.Retired() || mark.Role == cluster.RoleOld)
}

// moved are the looks at a node of a move from one pool into another: one that workloads
// have left has to be closed and empty, one that takes them to serve by the driver.
func (v *verifier) moved(n cluster.NodeView, mark *cluster.NodeState) []Look {
	if mark.Retired() || mark.Role == cluster.RoleOld {
		return []Look{
			v.look("the workloads have left the node", "run "+mark.Run, v.unretired(mark)),
			v.look("the node is closed to pods", "", v.closed(n)),
			v.look("no pod holds a device by the plugin", "", v.backed(n), cluster.PartPods, cluster.PartClaims),
		}
	}
	devices, incomplete := cluster.DevicesOf(n.SlicesOf(v.t.Driver), v.t.Driver)
	received := ""
	if !mark.Received() {
		received = fmt.Sprintf("run %s has left it at step %s", mark.Run, mark.Phase)
	}
	return []Look{
		v.look("the node takes the workloads of pool "+mark.Pool, "", received),
		v.double(n),
		v.look("nothing is allocatable by the device plugin", "", v.allocatable(n)),
		v.look("no pod holds a device by the plugin", "", v.backed(n), cluster.PartPods, cluster.PartClaims),
		v.look("the driver's pods are ready", "", v.driver(n), cluster.PartPods, cluster.PartDaemonSets),
		v.look("the driver's slices are complete", words.Count(len(devices), "device"), v.published(devices, incomplete), cluster.PartSlices),
		v.look("the node is open to pods", "", v.open(n)),
	}
}

func (v *verifier) unretired(mark *cluster.NodeState) string {
	if mark.Retired() {
		return ""
	}
	return fmt.Sprintf("run %s has left it at step %s", mark.Run, mark.Phase)
}

func (v *verifier) closed(n cluster.NodeView) string {
	switch {
	case !n.Node.Spec.Unschedulable:
		return "it is not cordoned"
	case !slices.ContainsFunc(n.Node.Spec.Taints, gate.IsSwitchingTaint):
		return "the taint " + gate.SwitchingTaintKey + " is missing"
	}
	return ""
}
