package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/vendor"
	"github.com/dramigrate/dramigrate/internal/words"
)

// mark closes the node and records how it was before, in one PATCH. In a run that
// resumes, or that turns back another run, it takes the node over as it stands: the
// first record of how it was before is the one that counts.
func (n *nodeRun) mark(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var answered []event.Event
	err := n.write(ctx, plan.StepMark, n.patcher.Take, func(e *NodeEdit) error {
		answered = nil
		if e.State.Gate != "" && e.State.Gate != n.plan.Gate.Name {
			return fmt.Errorf("a run has moved it by gate %s, and this plan is for gate %s; make a new plan", e.State.Gate, n.plan.Gate.Name)
		}
		at, known := n.plan.Gate.StateOf(e.Node.Labels)
		if busy := n.plan.Gate.Busy(e.Node.Labels); busy != "" {
			return fmt.Errorf("label %s: a vendor's controller is at work on it; run again when it is done", busy)
		}
		if !known {
			var err error
			if at, answered, err = n.adopt(e); err != nil {
				return err
			}
		}
		if e.State.Run == "" {
			if at != gate.Plugin && n.plan.Operation == plan.Migrate && n.role != cluster.RoleNew {
				return fmt.Errorf("it carries the labels of state %q but no record of what it was before; roll the pool back first", at)
			}
			e.State.Prior = priorOf(e.Node, n.plan.Gate)
			if at != gate.Plugin && n.role != cluster.RoleNew {
				// The record was lost. The node was the plugin's once.
				e.State.Prior.Labels = n.plan.Gate.Before(nil)
				closedByUs := slices.ContainsFunc(e.Node.Spec.Taints, gate.IsSwitchingTaint)
				e.State.Prior.Unschedulable = e.Node.Spec.Unschedulable && !closedByUs
			}
			e.State.Resources = n.plan.Resources
			e.State.Gate = n.plan.Gate.Name
			n.takePart(e)
		} else if e.State.OpenedAt != nil || e.State.RetiredAt != nil {
			// Open until now: what it is like as an open node is what to go back to. A retired
			// one has but its annotations back.
			if e.State.OpenedAt != nil {
				e.State.Prior.Unschedulable = e.Node.Spec.Unschedulable
			}
			for _, k := range closedAnnotationKeys() {
				e.State.Prior.Annotations[k] = valueOf(e.Node.Annotations, k)
			}
		}
		e.State.Selector = n.plan.Pool.Selector
		e.State.Operation = string(n.plan.Operation)
		e.State.OpenedAt, e.State.RetiredAt = nil, nil
		closeNode(e.Node, false)
		n.expect, n.lifted = at, false
		return nil
	})
	if err != nil {
		return err
	}
	n.tell(ctx, answered)
	n.record(ctx, "Normal", "DramigrateClosed", fmt.Sprintf("closed to pods for the %s of pool %s (run %s)", n.plan.Operation, n.plan.Pool.Name, n.id))
	return nil
}

// drain gets the plugin-backed pods off the node, and then every claim of the
// driver.
func (n *nodeRun) drain(ctx context.Context) error {
	held := func(v cluster.NodeView) string {
		if why := pluginHeld(v, n.plan.Resources); why != "" {
			return why
		}
		return claimsHeld(v, n.plan.Driver.Names...)
	}
	if err := n.evict(ctx, plan.StepDrain); err != nil {
		return err
	}
	return n.until(ctx, plan.StepDrain, 1, held)
}

// probeBefore records the GPUs that the kubelet advertises by the plugin, by their IDs.
// Once the plugin is off nobody can tell any more, so the first record stays.
func (n *nodeRun) probeBefore(ctx context.Context) error {
	if len(n.advertised()) > 0 || n.isSwitched() {
		return nil
	}
	report, err := n.probe(ctx, plan.StepProbeBefore)
	if err != nil {
		return err
	}
	ids := advertisedIDs(report.Advertised, n.plan.Resources)
	if len(ids) == 0 {
		return fmt.Errorf("the kubelet advertises no device of %s: nothing to compare the driver's devices with; look at the plugin's pod on the node",
			strings.Join(n.plan.Resources, ", "))
	}
	view, err := n.live.View(n.ref.Name)
	if err != nil {
		return err
	}
	if why := sharedByReplicas(view, report.Advertised, n.plan.Resources); why != "" {
		return errors.New(why)
	}
	if why := inParts(report.Advertised, n.plan.Resources); why != "" {
		return errors.New(why)
	}
	return n.edit(ctx, plan.StepProbeBefore, func(e *NodeEdit) error {
		e.State.Advertised = ids
		return nil
	})
}

// pluginOff moves the node between the mechanisms.
func (n *nodeRun) pluginOff(ctx context.Context) error {
	if err := n.shift(ctx, plan.StepPluginOff, gate.Switching, false, gate.Plugin); err != nil {
		return err
	}
	if err := n.until(ctx, plan.StepPluginOff, 0, func(v cluster.NodeView) string { return daemonPodsLeft(v, n.plan.Plugins) }); err != nil {
		return err
	}
	return n.until(ctx, plan.StepPluginOff, 1, func(v cluster.NodeView) string { return stillAllocatable(v, n.plan.Resources) })
}

// podResourcesList has the kubelet forget the pods that it served by the plugin.
// Until 1.38 it otherwise refuses DRA containers once its grace for the plugin is
// over (kubernetes/kubernetes#141426).
func (n *nodeRun) podResourcesList(ctx context.Context) error {
	report, err := n.probe(ctx, plan.StepPodResourcesList)
	if err != nil {
		return err
	}
	for _, h := range report.Holders {
		if slices.Contains(n.plan.Resources, h.Resource) {
			return fmt.Errorf("the kubelet says that pod %s still holds %s by the plugin (%s)", h.Pod, h.Resource, few(h.IDs))
		}
	}
	return n.edit(ctx, plan.StepPodResourcesList, func(e *NodeEdit) error {
		if e.State.PluginGoneAt == nil {
			now := metav1.NewTime(n.deps.Clock.Now())
			e.State.PluginGoneAt = &now
		}
		return nil
	})
}

// driverOn lets the driver onto the node and waits until it publishes exactly the
// GPUs that the node had under the plugin.
func (n *nodeRun) driverOn(ctx context.Context) error {
	if err := n.land(ctx, plan.StepDriverOn, gate.DRA, n.plan.Driver.DaemonSets, gate.Switching); err != nil {
		return err
	}
	if err := n.until(ctx, plan.StepDriverOn, 0, func(v cluster.NodeView) string { return daemonPodsNotReady(v, n.plan.Driver.DaemonSets) }); err != nil {
		return err
	}
	return n.until(ctx, plan.StepDriverOn, 1, func(v cluster.NodeView) string {
		return devicesNotAs(v, n.plan.Driver.Name, n.plan.Resources, n.advertised())
	})
}

// canary proves on the closed node that a pod which asks for the resource as every
// workload does is given the devices of its claim.
func (n *nodeRun) canary(ctx context.Context) error {
	unseen, err := n.helper.Canary(ctx, n.ref.Name)
	if err == nil && unseen != "" {
		n.emit(event.Warned{Stamp: n.stamp(), Node: n.ref.Name, Message: unseen})
	}
	return err
}

// open lets pods in again.
func (n *nodeRun) open(ctx context.Context) error {
	if err := n.until(ctx, plan.StepOpen, 0, n.switched); err != nil {
		return err
	}
	if n.role == "" && n.pluginCameBack() {
		if err := n.podResourcesList(ctx); err != nil {
			return err
		}
	} else if _, err := n.probe(ctx, plan.StepOpen); err != nil {
		return err
	}
	if err := n.until(ctx, plan.StepOpen, 0, n.switched); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var answered []event.Event
	err := n.write(ctx, plan.StepOpen, n.patcher.Patch, func(e *NodeEdit) error {
		var err error
		if answered, err = n.reclaim(e, n.expect); err != nil {
			return err
		}
		openNode(e.Node, e.State.Prior)
		now := metav1.NewTime(n.deps.Clock.Now())
		e.State.OpenedAt = &now
		n.opened = true
		return nil
	})
	if err != nil {
		n.opened = false
		return err
	}
	n.tell(ctx, answered)
	n.record(ctx, "Normal", "DramigrateSwitched", fmt.Sprintf("%s is now served by DRA driver %s (run %s)", n.plan.Resource, n.plan.Driver.Name, n.id))
	return nil
}

// shift moves the node's labels to a state of the gate, from one of the states
// named. A node that is already further on is left as it is.
func (n *nodeRun) shift(ctx context.Context, step plan.StepID, to gate.State, lifted bool, from ...gate.State) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	// The change is thought out anew when somebody else wrote in between, so what the
	// guard expects is told only when it is done.
	moved := false
	var answered []event.Event
	err := n.write(ctx, step, n.patcher.Patch, func(e *NodeEdit) error {
		at, known := n.plan.Gate.StateOf(e.Node.Labels)
		if known && at == to {
			answered = nil // also if the answer to our PATCH was lost
		} else {
			var err error
			if answered, err = n.reclaim(e, n.expect); err != nil {
				return err
			}
			at = n.expect
		}
		if at != to && !slices.Contains(from, at) {
			moved = false
			return nil
		}
		setState(e, n.plan.Gate, to)
		closeNode(e.Node, lifted)
		moved = true
		return nil
	})
	if err == nil {
		n.tell(ctx, answered)
	}
	if err == nil && moved {
		n.expect, n.lifted = to, lifted
	}
	return err
}

// land moves the node to a state and lets the pods of DaemonSets land there. They
// tolerate the cordon, not our taint, so that is away until they are bound; the
// cordon stays.
func (n *nodeRun) land(ctx context.Context, step plan.StepID, to gate.State, sets []plan.Object, from ...gate.State) error {
	missing := func(v cluster.NodeView) string {
		if !n.at(v.Node, to) {
			return "the label is not there yet"
		}
		return daemonPodsMissing(v, sets)
	}
	if err := n.shift(ctx, step, to, true, from...); err != nil {
		return err
	}
	if err := n.until(ctx, step, 0, missing); err != nil {
		return err
	}
	return n.shift(ctx, step, to, false)
}

// isSwitched says that the plugin was turned off by this run or an earlier one.
func (n *nodeRun) isSwitched() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.expect != gate.Plugin
}

// evict drains what the plan says from the node and reports it.
func (n *nodeRun) evict(ctx context.Context, step plan.StepID) error {
	return n.drainer.Drain(ctx, n.ref.Name, n.wanted, drainEvents(n.ref.Name, step, n.deps.Sink))
}

// wanted says which pods a drain evicts, and why: by default only those that hold
// what the node is switched for.
func (n *nodeRun) wanted(pod *corev1.Pod) (bool, string) {
	p := cluster.ProjectPod(pod)
	view, err := n.live.View(n.ref.Name)
	if err != nil {
		return false, "" // the wait that follows says what cannot be seen
	}
	if n.plan.Operation == plan.Migrate && cluster.PluginBacked(&p, n.plan.Resources, view.Claims) {
		return true, "the device plugin backs its " + n.plan.Resource
	}
	for _, use := range view.ClaimsOf(n.plan.Driver.Names...) {
		if use.Namespace == p.Namespace && slices.Contains(use.Users, p.Name) {
			return true, "holds claim " + use.Name
		}
	}
	if n.plan.Settings.Drain == plan.DrainAll {
		return true, "the whole node is drained"
	}
	return false, ""
}

// advertisedIDs gathers the device IDs of the plugin's resources, sorted.
func advertisedIDs(byResource map[string][]string, resources []string) []string {
	var out []string
	for _, r := range resources {
		if vendor.DeviceCounts(r) {
			out = append(out, byResource[r]...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// inParts says which of the plugin's devices are parts of one, where plugin and driver
// have no common name for such.
func inParts(advertised map[string][]string, resources []string) string {
	for _, r := range resources {
		parts := slices.DeleteFunc(slices.Clone(advertised[r]), func(id string) bool { return !vendor.IsPart(r, id) })
		if len(parts) > 0 {
			return fmt.Sprintf("the plugin offers parts of devices by %s (%s), which the driver names otherwise: nothing could tell whether it publishes the same; leave the node on the plugin, or put its devices together first", r, few(parts))
		}
	}
	return ""
}

// sharedByReplicas says for which resource the plugin offers one device several
// times (time-slicing, MPS): its IDs are the device's and a replica number, of which
// the probe keeps the first part. A claim takes the whole device.
func sharedByReplicas(v cluster.NodeView, advertised map[string][]string, resources []string) string {
	for _, r := range resources {
		if n, _ := v.Allocatable(r); n > int64(len(advertised[r])) {
			return fmt.Sprintf("the plugin offers %d of %s on %s: devices are shared by replicas, which DRA does not do by this name; switch sharing off in the plugin's configuration first",
				n, r, words.Count(len(advertised[r]), "device"))
		}
	}
	return ""
}
