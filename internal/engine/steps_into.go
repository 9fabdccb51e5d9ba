package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// takePart records on a node without a record what it is in a move into another pool.
func (n *nodeRun) takePart(e *NodeEdit) {
	if n.role == "" {
		return
	}
	e.State.Role = n.role
	e.State.Into = &cluster.PoolRef{Name: n.plan.Into.Name, Selector: n.plan.Into.Selector}
	if n.role != cluster.RoleOld {
		return
	}
	if n.plan.Operation == plan.Rollback {
		e.State.Prior.Unschedulable = false // the record was lost; whoever tainted the node cordoned it
		return
	}
	view := cluster.NodeView{Node: e.Node}
	e.State.Offered = map[string]int64{}
	for _, r := range n.plan.Resources {
		if count, _ := view.Allocatable(r); count > 0 {
			e.State.Offered[r] = count
		}
	}
}

// moved says that nothing is left to do on a node of a move into another pool.
func (n *nodeRun) moved(state *cluster.NodeState, node *corev1.Node) bool {
	switch {
	case n.plan.Leaves(n.ref.Name):
		return state.Retired() && state.Operation == string(n.plan.Operation) && notClosed(node, false) == ""
	case n.plan.Operation == plan.Rollback:
		return state == nil
	default:
		return state.Received()
	}
}

// offeredAgain says how many devices the plugin still lacks on a node, of those that it
// offered before a run.
func (n *nodeRun) offeredAgain(v cluster.NodeView) string {
	n.mu.Lock()
	before := maps.Clone(n.state.Offered)
	n.mu.Unlock()
	if n.role == "" {
		return notAdvertised(v, n.plan.Resource, len(n.advertised()))
	}
	for _, r := range slices.Sorted(maps.Keys(before)) {
		if why := notAdvertised(v, r, int(before[r])); why != "" {
			return why
		}
	}
	return ""
}

// driverReady waits until a new node serves devices by the driver, and by nothing else.
func (n *nodeRun) driverReady(ctx context.Context) error {
	err := n.until(ctx, plan.StepDriverReady, 0, func(v cluster.NodeView) string {
		if !cluster.Ready(v.Node) {
			return "the node is not ready"
		}
		if why := stillAllocatable(v, n.plan.Resources); why != "" {
			return why
		}
		return daemonPodsNotReady(v, n.plan.Driver.DaemonSets)
	})
	if err != nil {
		return err
	}
	return n.until(ctx, plan.StepDriverReady, 1, func(v cluster.NodeView) string { return devicesNotAs(v, n.plan.Driver.Name, n.plan.Resources, nil) })
}

// retire leaves a node closed that workloads have left, and lets autoscalers have it.
func (n *nodeRun) retire(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.write(ctx, plan.StepRetire, n.patcher.Patch, func(e *NodeEdit) error {
		if _, err := n.reclaim(e, n.expect); err != nil {
			return err
		}
		closeNode(e.Node, false)
		annotationsBack(e.Node, e.State.Prior)
		now := metav1.NewTime(n.deps.Clock.Now())
		e.State.RetiredAt = &now
		n.opened = true
		return nil
	})
	if err != nil {
		n.opened = false
		return err
	}
	n.record(ctx, "Normal", "DramigrateRetired", fmt.Sprintf("its pods with %s went to other nodes; it stays cordoned (run %s)", n.plan.Resource, n.id))
	return nil
}
