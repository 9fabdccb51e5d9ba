package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// nodeRun brings one node through its steps. Every step looks before it acts, so
// that a run which resumes does only what is left.
type nodeRun struct {
	*poolRun
	ref  plan.NodeRef
	role cluster.Role // in a move into another pool
	live *Live

	// mu orders the run's own changes and the guard's. What it protects says how the
	// guard expects the node to be.
	mu     sync.Mutex
	state  cluster.NodeState // as this run wrote it last
	expect gate.State        // of the gate's labels
	lifted bool              // the taint is away for a DaemonSet pod to land
	opened bool              // the run has opened the node: nothing is guarded any more
	blind  map[string]bool   // the parts of the node that it has been told were not looked at
	tries  int               // how often the run has set gate labels again
}

func (r *poolRun) node(ref plan.NodeRef, live *Live) *nodeRun {
	return &nodeRun{poolRun: r, ref: ref, role: r.plan.RoleOf(ref.Name), live: live}
}

// pull proves that the helper's image runs on the node, before it is touched, and
// removes what killed runs have left there.
func (n *nodeRun) pull(ctx context.Context) error {
	if err := n.helper.Sweep(ctx, n.ref.Name); err != nil {
		return err
	}
	if done, err := n.finished(); done || err != nil {
		return err
	}
	if n.role == cluster.RoleOld {
		return nil // no helper runs there
	}
	return n.helper.Pull(ctx, n.ref.Name)
}

// finished says that nothing is left to do on the node: it was switched and opened,
// or (for a rollback) it carries no trace of the tool.
func (n *nodeRun) finished() (bool, error) {
	view, err := n.live.View(n.ref.Name)
	if err != nil {
		return false, fmt.Errorf("node/%s: %w", n.ref.Name, err)
	}
	state, err := cluster.ParseNodeState(view.Node)
	if err != nil {
		return false, err
	}
	if n.role != "" {
		return n.moved(state, view.Node), nil
	}
	if n.plan.Operation == plan.Rollback {
		return state == nil && n.at(view.Node, gate.Plugin), nil
	}
	return migrated(state) && n.at(view.Node, gate.DRA), nil
}

// run does the plan's steps in the plan's order.
func (n *nodeRun) run(ctx context.Context) error {
	began := n.deps.Clock.Now()
	if done, err := n.finished(); err != nil {
		return err
	} else if again, err := n.metAgain(); err != nil {
		return err
	} else if done && again {
		return n.unsettle(ctx)
	} else if done {
		n.emit(event.StepSkipped{Stamp: n.stamp(), Node: n.ref.Name, Step: plan.StepMark, Reason: "done by an earlier run"})
		return nil
	}
	ctx, stop := context.WithCancelCause(ctx)
	guard := n.guard(ctx, stop)
	defer func() { stop(nil); guard.Wait() }()

	steps := stepsOf(n.plan.Operation)
	for _, s := range n.plan.StepsOn(n.ref.Name) {
		do, ok := steps[s.ID]
		if !ok {
			if s.ID == plan.StepSettle { // done for the whole pool at the end
				continue
			}
			return fmt.Errorf("node/%s: the plan has a step %q that this version does not know", n.ref.Name, s.ID)
		}
		at := n.deps.Clock.Now()
		n.emit(event.StepStarted{Stamp: event.StampAt(at), Node: n.ref.Name, Step: s.ID, Title: s.Title})
		if err := do(n, ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			err = fmt.Errorf("node/%s: %s: %w", n.ref.Name, s.ID, err)
			n.emit(event.StepFailed{Stamp: n.stamp(), Node: n.ref.Name, Step: s.ID, Err: err})
			return err
		}
		n.emit(event.StepDone{Stamp: n.stamp(), Node: n.ref.Name, Step: s.ID, Took: n.deps.Clock.Since(at)})
	}
	n.emit(event.NodeDone{Stamp: n.stamp(), Node: n.ref.Name, Took: n.deps.Clock.Since(began)})
	return nil
}

// edit changes the node in the name of the step; the annotation says so in the same
// PATCH.
func (n *nodeRun) edit(ctx context.Context, step plan.StepID, change func(*NodeEdit) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.write(ctx, step, n.patcher.Patch, change)
}

// write is edit with n.mu held, and with the choice of how the node is taken.
func (n *nodeRun) write(ctx context.Context, step plan.StepID,
	send func(context.Context, plan.NodeRef, func(*NodeEdit) error) (*corev1.Node, error), change func(*NodeEdit) error) error {
	n.begun.Store(true)
	var after *cluster.NodeState
	_, err := send(ctx, n.ref, func(e *NodeEdit) error {
		if e.State == nil {
			e.State = &cluster.NodeState{}
		}
		e.State.Phase = string(step)
		if err := change(e); err != nil {
			return err
		}
		after = e.State
		return nil
	})
	if err == nil && after != nil {
		n.state = *after
	}
	return err
}

// until waits for cond on the watched node and confirms it by a consistent read,
// because what follows may not be undone. i is the wait's place in the plan's step.
func (n *nodeRun) until(ctx context.Context, id plan.StepID, i int, cond func(cluster.NodeView) string) error {
	what, limit := n.limit(id, i)
	deadline := n.deps.Clock.Now().Add(limit)
	for {
		err := Wait(ctx, n.live, WaitOptions{
			Node: n.ref.Name, Step: id, For: what, Deadline: deadline.Sub(n.deps.Clock.Now()),
			Clock: n.deps.Clock, Sink: n.deps.Sink,
		}, cond)
		if err != nil {
			return err
		}
		fresh, err := n.live.Fresh(ctx, n.ref.Name)
		if err != nil {
			return fmt.Errorf("confirm %s: %w", what, err)
		}
		if cond(fresh) == "" {
			return nil
		}
	}
}

// pause lets time pass that the step needs, visibly.
func (n *nodeRun) pause(ctx context.Context, id plan.StepID, what string, d time.Duration) error {
	since := n.deps.Clock.Now()
	end := since.Add(d)
	n.emit(event.Waiting{Stamp: event.StampAt(since), Node: n.ref.Name, Step: id, For: what,
		Reason: fmt.Sprintf("for %s", d.Round(time.Second)), Since: since, Deadline: end})
	t := n.deps.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C():
		return nil
	}
}

// limit is what the plan waits for in a step, and for how long.
func (r *poolRun) limit(id plan.StepID, i int) (string, time.Duration) {
	s, ok := r.step(id)
	if !ok || len(s.Waits) == 0 {
		return "the step " + string(id), time.Minute
	}
	w := s.Waits[min(i, len(s.Waits)-1)]
	return w.For, w.Deadline.Duration
}

// switched is what an open, migrated node has to be like for as long as it is one.
func (n *nodeRun) switched(v cluster.NodeView) string {
	if n.role == "" && !n.at(v.Node, gate.DRA) {
		return theirs(v.Node, n.plan.Gate.Drift(gate.DRA, v.Node.Labels))
	}
	if why := stillAllocatable(v, n.plan.Resources); why != "" {
		return why + n.lostUpdate(v)
	}
	if why := daemonPodsNotReady(v, n.plan.Driver.DaemonSets); why != "" {
		return why
	}
	return devicesNotAs(v, n.plan.Driver.Name, n.plan.Resources, n.advertised())
}

// lostUpdate is what to do about a node that offers a resource without its plugin. When
// the grace for a plugin is over the kubelet tells once that the resource is gone; if that
// update of the node's status is lost, it takes the capacity from the node object ever
// after, and allocatable from the capacity (pkg/kubelet/nodestatus/setters.go,
// MachineInfo, and cm/devicemanager/manager.go, GetCapacity, v1.37.2).
func (n *nodeRun) lostUpdate(v cluster.NodeView) string {
	if daemonPodsLeft(v, n.plan.Plugins) != "" {
		return ""
	}
	var zeros []string
	for _, r := range n.plan.Resources {
		if count, _ := v.Allocatable(r); count > 0 {
			zeros = append(zeros, fmt.Sprintf("%q:\"0\"", r))
		}
	}
	return fmt.Sprintf(", and no pod of the plugin is there; if it stays so, the kubelet's word that the plugin is gone was lost, and `kubectl patch node %s --subresource=status --type=merge -p '{\"status\":{\"capacity\":{%s}}}'` gives it", n.ref.Name, strings.Join(zeros, ","))
}

// advertised are the IDs of the devices that the node had under the plugin; none if they
// are not known.
func (n *nodeRun) advertised() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.state.Advertised)
}

// at says that the node's labels are those of a state of the gate.
func (r *poolRun) at(node *corev1.Node, want gate.State) bool {
	state, ok := r.plan.Gate.StateOf(node.Labels)
	return ok && state == want
}

// setState moves a node to a state of the gate. Back at the plugin it has what its
// record says it had, so that no vendor's controller sees a value in between.
func setState(e *NodeEdit, g gate.Gate, to gate.State) {
	if to == gate.Plugin {
		setLabels(e.Node, g.Before(e.State))
		return
	}
	want := map[string]*string{}
	for k, v := range g.Labels[to] {
		if want[k] = nil; v != "" {
			want[k] = &v
		}
	}
	setLabels(e.Node, want)
}

// setLabels gives labels these values; nil removes one.
func setLabels(node *corev1.Node, want map[string]*string) {
	for k, v := range want {
		if v == nil {
			delete(node.Labels, k)
			continue
		}
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		node.Labels[k] = *v
	}
}
