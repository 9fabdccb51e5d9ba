package engine

import (
	"context"
	"sync"

	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// guard watches a node that this run holds closed. Drivers' managers and upgrade
// controllers uncordon nodes that they did not cordon: the guard closes the node
// again and says so. A gate label that changes under the run is set again or ends the
// run, as reclaim decides. It goes on until ctx ends.
func (n *nodeRun) guard(ctx context.Context, stop context.CancelCauseFunc) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			changed := n.live.Changed(n.ref.Name)
			if err := n.look(ctx); err != nil {
				if ctx.Err() == nil {
					stop(err)
				}
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	})
	return &wg
}

// look compares the watched node with what the run expects and answers a change.
// The watch may lag behind the run's own writes, so what is done about a difference
// is decided on the node as it is read for the PATCH.
func (n *nodeRun) look(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state.Run != n.id || n.opened {
		return nil
	}
	view, err := n.live.View(n.ref.Name)
	if IsUnseen(err) {
		return nil // the step that waits says so
	}
	if err != nil {
		return err
	}
	if notClosed(view.Node, n.lifted) == "" && len(n.plan.Gate.Drift(n.expect, view.Node.Labels)) == 0 {
		return nil
	}
	var answered []event.Event
	err = n.write(ctx, plan.StepID(n.state.Phase), n.patcher.Patch, func(e *NodeEdit) error {
		var err error
		if answered, err = n.reclaim(e, n.expect); err != nil {
			return err
		}
		why := notClosed(e.Node, n.lifted)
		if why == "" {
			return nil
		}
		if !e.Node.Spec.Unschedulable && e.State.Prior.Unschedulable {
			// Whoever had cordoned the node before us has lifted that cordon now:
			// at the end it is to be open.
			e.State.Prior.Unschedulable = false
		}
		closeNode(e.Node, n.lifted)
		answered = append(answered, event.ForeignChange{Stamp: n.stamp(), Node: n.ref.Name, What: why, Answer: "closed it again"})
		return nil
	})
	if err != nil {
		return err
	}
	n.tell(ctx, answered)
	return nil
}
