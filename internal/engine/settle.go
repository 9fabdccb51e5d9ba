package engine

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// settleTries bounds how many graces a node may take: each kubelet restart begins a
// new one.
const settleTries = 4

// settle makes the kubelets' memory of the plugin harmless for good. The List call
// of the migration cleared it, but not the kubelet's checkpoint, which is written
// anew only when the grace for the plugin is over: a kubelet that restarts before
// remembers everything again, and refuses DRA containers one grace later. So when
// the grace is over the call is made once more, and again for each restart that was
// seen meanwhile. The nodes are open during this; it only takes time.
func (r *poolRun) settle(ctx context.Context) error {
	if _, planned := r.step(plan.StepSettle); !planned {
		return nil
	}
	due, err := r.unsettled(ctx)
	if err != nil || len(due) == 0 {
		return err
	}
	names := make([]string, len(due))
	for i, ref := range due {
		names[i] = ref.Name
	}
	live := NewLive(r.client, r.deps.Clock)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := live.Start(watching, names...); err != nil {
		return err
	}
	runs := make([]*nodeRun, len(due))
	for i, ref := range due {
		runs[i] = r.node(ref, live)
	}
	return each(runs, func(n *nodeRun) error {
		if err := n.settle(ctx); err != nil {
			return fmt.Errorf("node/%s: %s: %w", n.ref.Name, plan.StepSettle, err)
		}
		return nil
	})
}

// unsettled are the pool's nodes that were opened and not settled, by this run or by
// an earlier one.
func (r *poolRun) unsettled(ctx context.Context) ([]plan.NodeRef, error) {
	var due []plan.NodeRef
	for _, ref := range r.plan.Pool.Nodes {
		node, err := r.client.CoreV1().Nodes().Get(ctx, ref.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("node/%s: read: %w", ref.Name, err)
		}
		state, err := cluster.ParseNodeState(node)
		if err != nil {
			return nil, err
		}
		if node.UID == ref.UID && migrated(state) && state.SettledAt == nil && state.PluginGoneAt != nil {
			due = append(due, ref)
		}
	}
	return due, nil
}

// metAgain says that the node had settled before this run, and that its kubelet has met
// the plugin since. That the plan has the node may have another reason: a helper pod that
// was left.
func (n *nodeRun) metAgain() (bool, error) {
	view, err := n.live.View(n.ref.Name)
	if err != nil {
		return false, err
	}
	state, err := cluster.ParseNodeState(view.Node)
	if err != nil || !migrated(state) || state.SettledAt == nil {
		return false, err
	}
	var inv gate.Inventory
	for _, p := range n.plan.Plugins {
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
		inv.Plugins = append(inv.Plugins, gate.PluginDaemonSet{DaemonSet: ds, Role: gate.DevicePlugin, Resources: n.plan.Resources})
	}
	return inv.MetAgain(view, n.plan.Resource, state.SettledAt.Time) != "", nil
}

// unsettle makes a node that had settled one that has still to: the plugin has to be gone
// again, and the kubelet's grace for it begins anew.
func (n *nodeRun) unsettle(ctx context.Context) error {
	began := n.deps.Clock.Now()
	n.emit(event.StepStarted{Stamp: event.StampAt(began), Node: n.ref.Name, Step: plan.StepPodResourcesList, Title: "clear the kubelet's memory of the plugin, which it has met again"})
	err := func() error {
		n.mu.Lock()
		err := n.write(ctx, plan.StepPodResourcesList, n.patcher.Take, func(e *NodeEdit) error {
			if !migrated(e.State) || !n.at(e.Node, gate.DRA) {
				return fmt.Errorf("the node was taken back meanwhile")
			}
			e.State.PluginGoneAt, e.State.SettledAt = nil, nil
			return nil
		})
		n.mu.Unlock()
		if err != nil {
			return err
		}
		if err := n.until(ctx, plan.StepOpen, 0, n.switched); err != nil {
			return err
		}
		return n.podResourcesList(ctx)
	}()
	if err != nil {
		err = fmt.Errorf("node/%s: %s: %w", n.ref.Name, plan.StepPodResourcesList, err)
		n.emit(event.StepFailed{Stamp: n.stamp(), Node: n.ref.Name, Step: plan.StepPodResourcesList, Err: err})
		return err
	}
	n.emit(event.StepDone{Stamp: n.stamp(), Node: n.ref.Name, Step: plan.StepPodResourcesList, Took: n.deps.Clock.Since(began)})
	return nil
}

func (n *nodeRun) settle(ctx context.Context) error {
	view, err := n.live.View(n.ref.Name)
	if err != nil {
		return err
	}
	state, err := cluster.ParseNodeState(view.Node)
	if err != nil {
		return err
	}
	if !migrated(state) || state.SettledAt != nil || state.PluginGoneAt == nil {
		return nil
	}
	n.state = *state
	began := n.deps.Clock.Now()
	n.emit(event.StepStarted{Stamp: n.stamp(), Node: n.ref.Name, Step: plan.StepSettle, Title: "clear the kubelet's memory of the plugin"})
	if !forgets(view.Node.Status.NodeInfo.KubeletVersion) {
		if err := n.outlastGrace(ctx, *state); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	err = n.write(ctx, plan.StepSettle, n.patcher.Take, func(e *NodeEdit) error {
		if !migrated(e.State) || !n.at(e.Node, gate.DRA) {
			return fmt.Errorf("the node was taken back meanwhile")
		}
		now := metav1.NewTime(n.deps.Clock.Now())
		e.State.SettledAt = &now
		return nil
	})
	if err == nil {
		n.emit(event.StepDone{Stamp: n.stamp(), Node: n.ref.Name, Step: plan.StepSettle, Took: n.deps.Clock.Since(began)})
	}
	return err
}

// outlastGrace calls List after each grace until one has passed without a restart.
func (n *nodeRun) outlastGrace(ctx context.Context, state cluster.NodeState) error {
	grace := n.plan.Settings.KubeletGrace.Duration
	from := state.PluginGoneAt.Time
	for range settleTries {
		if left := from.Add(grace).Sub(n.deps.Clock.Now()); left > 0 {
			if err := n.pause(ctx, plan.StepSettle, "the kubelet's grace for the plugin to pass", left); err != nil {
				return err
			}
		}
		known, err := n.live.View(n.ref.Name)
		if err != nil {
			return err
		}
		if _, err := n.helper.Probe(ctx, known.Node, plan.StepSettle); err != nil {
			return err
		}
		// A kubelet that restarts wipes the slices, and it takes half a minute until
		// they are back: only then does their age tell when it was.
		if err := n.until(ctx, plan.StepSettle, 0, n.switched); err != nil {
			return err
		}
		view, err := n.live.Fresh(ctx, n.ref.Name)
		if err != nil {
			return err
		}
		restarted := lastRestart(view, n.plan.Driver.Name, state.OpenedAt.Time)
		if !restarted.After(from) {
			return nil
		}
		n.emit(event.ForeignChange{Stamp: n.stamp(), Node: n.ref.Name,
			What: "the kubelet restarted at about " + restarted.UTC().Format(time.RFC3339), Answer: "waiting for one more grace"})
		from = restarted
	}
	return fmt.Errorf("the kubelet restarted during each of %d graces of %s; run the same command again when it is stable", settleTries, grace)
}

// lastRestart tells a kubelet's restart since the node was opened by the age of the
// driver's slices: a kubelet that starts wipes them and the driver publishes new
// ones (pkg/kubelet/cm/dra/manager.go, v1.37.2). Zero if there was none.
func lastRestart(v cluster.NodeView, driver string, opened time.Time) time.Time {
	var last time.Time
	for _, s := range v.SlicesOf(driver) {
		if t := s.CreationTimestamp.Time; t.After(opened) && t.After(last) {
			last = t
		}
	}
	return last
}

// forgets says that a kubelet needs no help: from 1.38 on it does not ask an ended
// plugin about DRA containers (kubernetes/kubernetes#141426). A version that cannot
// be read is not trusted to.
func forgets(kubelet string) bool {
	v, err := version.ParseGeneric(kubelet)
	return err == nil && v.AtLeast(version.MustParseGeneric("1.38.0"))
}
