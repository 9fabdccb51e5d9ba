package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// drainClaims gets the pods that hold a claim of the driver off the node while the
// driver still runs: without it the kubelet cannot unprepare their devices and they
// stay Terminating for ever.
func (n *nodeRun) drainClaims(ctx context.Context) error {
	if err := n.evict(ctx, plan.StepDrainClaims); err != nil {
		return err
	}
	return n.until(ctx, plan.StepDrainClaims, 1, func(v cluster.NodeView) string { return claimsHeld(v, n.plan.Driver.Names...) })
}

// driverOff takes the driver off the node and waits until the kubelet has wiped its
// slices: until then the scheduler would still allocate from them.
func (n *nodeRun) driverOff(ctx context.Context) error {
	if !n.isSwitched() {
		return nil // the plugin was never turned off here
	}
	if err := n.shift(ctx, plan.StepDriverOff, gate.Switching, false, gate.DRA); err != nil {
		return err
	}
	if err := n.until(ctx, plan.StepDriverOff, 0, func(v cluster.NodeView) string { return daemonPodsLeft(v, n.plan.Driver.DaemonSets) }); err != nil {
		return err
	}
	return n.until(ctx, plan.StepDriverOff, 1, func(v cluster.NodeView) string { return slicesLeft(v, n.plan.Driver.Name) })
}

// pluginOn lets the plugin back and waits until the kubelet advertises the GPUs that
// it advertised before.
func (n *nodeRun) pluginOn(ctx context.Context) error {
	if err := n.land(ctx, plan.StepPluginOn, gate.Plugin, n.plan.Plugins, gate.Switching); err != nil {
		return err
	}
	before := n.advertised()
	if err := n.until(ctx, plan.StepPluginOn, 0, func(v cluster.NodeView) string { return daemonPodsNotReady(v, n.plan.Plugins) }); err != nil {
		return err
	}
	if err := n.until(ctx, plan.StepPluginOn, 1, func(v cluster.NodeView) string {
		return notAdvertised(v, n.plan.Resource, len(before))
	}); err != nil {
		return hinted(err, noPluginHint)
	}
	report, err := n.probe(ctx, plan.StepPluginOn)
	if err != nil {
		return err
	}
	now := advertisedIDs(report.Advertised, n.plan.Resources)
	if len(before) == 0 {
		n.emit(event.Warned{Stamp: n.stamp(), Node: n.ref.Name,
			Message: "which GPUs the node advertised before is not recorded; it advertises " + strings.Join(now, ", ")})
		return nil
	}
	if missing := cluster.Difference(before, now); len(missing) > 0 {
		return fmt.Errorf("the kubelet does not advertise %s, which it did before; look at the plugin's pod on the node", few(missing))
	}
	if extra := cluster.Difference(now, before); len(extra) > 0 {
		n.emit(event.Warned{Stamp: n.stamp(), Node: n.ref.Name,
			Message: "advertised now and not before the migration: " + strings.Join(extra, ", ")})
	}
	return nil
}

// restore puts back what the node was like before the tool came and removes the
// tool's record, in one PATCH.
func (n *nodeRun) restore(ctx context.Context) error {
	clean := func(v cluster.NodeView) string {
		if why := slicesLeft(v, n.plan.Driver.Name); why != "" {
			return why
		}
		return n.offeredAgain(v)
	}
	if err := n.until(ctx, plan.StepRestore, 0, clean); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.write(ctx, plan.StepRestore, n.patcher.Patch, func(e *NodeEdit) error {
		if _, err := n.reclaim(e, gate.Plugin); err != nil {
			return err
		}
		openNode(e.Node, e.State.Prior)
		setState(e, n.plan.Gate, gate.Plugin)
		n.opened = true
		e.State = nil
		return nil
	})
	if err != nil && !n.restored(ctx, err) {
		n.opened = false
		return err
	}
	n.record(ctx, "Normal", "DramigrateRolledBack", fmt.Sprintf("%s is served by the device plugin again (run %s)", n.plan.Resource, n.id))
	return nil
}

// restored tells a PATCH whose answer was lost from one that failed: the record is
// gone and the node is as it has to be.
func (n *nodeRun) restored(ctx context.Context, err error) bool {
	var fenced *FencedError
	if !errors.As(err, &fenced) || fenced.Run != "" {
		return false
	}
	v, err := n.live.Fresh(ctx, n.ref.Name)
	if err != nil {
		return false
	}
	state, err := cluster.ParseNodeState(v.Node)
	closed := slices.ContainsFunc(v.Node.Spec.Taints, gate.IsSwitchingTaint)
	return err == nil && state == nil && !closed && n.at(v.Node, gate.Plugin)
}
