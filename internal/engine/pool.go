package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/drain"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// poolRun is a migration or a rollback of one pool.
type poolRun struct {
	*session
	patcher *NodePatcher
	helper  helper
	drainer drain.Drainer
	class   classStep
}

// pool does the batches one after another, the nodes of a batch at the same time.
func (s *session) pool(ctx context.Context) error {
	r := &poolRun{session: s}
	r.patcher = &NodePatcher{
		Client: s.client, Clock: s.deps.Clock, Pool: s.plan.Pool.Name, Run: s.id, Epoch: s.lock.Epoch(),
		Labels: s.plan.Gate.Keys(), Annotations: closedAnnotationKeys(),
	}
	r.helper = r.newHelper()
	r.drainer = drain.New(drain.Options{
		Client: s.client, Clock: s.deps.Clock, Timeout: s.plan.Settings.DrainTimeout.Duration,
		DeleteEmptyDirData: s.plan.Settings.DeleteEmptyDir, EvictUnmanaged: s.plan.Settings.EvictUnmanaged,
	})

	for i, b := range s.plan.Batches {
		if err := r.batch(ctx, i+1, b); err != nil {
			return err
		}
	}
	if s.plan.Operation == plan.Migrate {
		return r.settle(ctx)
	}
	return nil
}

// batch brings all nodes of one batch through their steps. A node that fails does
// not stop the others half-way: each of them is better off finished. The batch then
// fails as a whole, and no further batch begins.
func (r *poolRun) batch(ctx context.Context, number int, b plan.Batch) error {
	began := r.deps.Clock.Now()
	nodes, err := r.refs(b.Nodes)
	if err != nil {
		return err
	}
	r.emit(event.BatchStarted{Stamp: r.stamp(), Batch: number, Of: len(r.plan.Batches), Nodes: b.Nodes})
	live := NewLive(r.client, r.deps.Clock)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := live.Start(watching, b.Nodes...); err != nil {
		return err
	}

	runs := make([]*nodeRun, len(nodes))
	for i, ref := range nodes {
		runs[i] = r.node(ref, live)
	}
	// The image is pulled everywhere before the first node of the batch is touched.
	if err := each(runs, func(n *nodeRun) error { return n.pull(ctx) }); err != nil {
		return err
	}
	if err := each(runs, func(n *nodeRun) error { return n.run(ctx) }); err != nil {
		return err
	}
	if err := r.soak(ctx, runs); err != nil {
		return err
	}
	r.emit(event.BatchDone{Stamp: r.stamp(), Batch: number, Of: len(r.plan.Batches), Nodes: b.Nodes, Took: r.deps.Clock.Since(began)})
	return nil
}

// soak watches the opened nodes of a batch for a while: what they were opened with
// has to hold at the end of it.
func (r *poolRun) soak(ctx context.Context, runs []*nodeRun) error {
	d := r.plan.Settings.Soak.Duration
	if d <= 0 || r.plan.Operation != plan.Migrate {
		return nil
	}
	runs = slices.DeleteFunc(slices.Clone(runs), func(n *nodeRun) bool { return n.role == cluster.RoleOld })
	return each(runs, func(n *nodeRun) error {
		if err := n.pause(ctx, plan.StepOpen, "the node to stay healthy", d); err != nil {
			return err
		}
		return n.until(ctx, plan.StepOpen, 0, n.switched)
	})
}

// each calls do for all nodes at once and joins what failed.
func each(runs []*nodeRun, do func(*nodeRun) error) error {
	errs := make([]error, len(runs))
	var wg sync.WaitGroup
	for i, n := range runs {
		wg.Go(func() { errs[i] = do(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// refs are the batch's nodes with the UIDs of the plan.
func (r *poolRun) refs(names []string) ([]plan.NodeRef, error) {
	uid := map[string]plan.NodeRef{}
	for _, n := range r.plan.AllNodes() {
		uid[n.Name] = n
	}
	out := make([]plan.NodeRef, 0, len(names))
	for _, name := range names {
		ref, ok := uid[name]
		if !ok {
			return nil, fmt.Errorf("plan: node/%s is in a batch and in no pool of the plan", name)
		}
		out = append(out, ref)
	}
	return out, nil
}

// step finds a step of the plan by its ID.
func (r *poolRun) step(id plan.StepID) (plan.Step, bool) {
	for _, s := range r.plan.NodeSteps {
		if s.ID == id {
			return s, true
		}
	}
	return plan.Step{}, false
}

// stepsOf is the table of what the engine can do to a node.
func stepsOf(op plan.Operation) map[plan.StepID]func(*nodeRun, context.Context) error {
	if op == plan.Rollback {
		return map[plan.StepID]func(*nodeRun, context.Context) error{
			plan.StepMark:        (*nodeRun).mark,
			plan.StepDrainClaims: (*nodeRun).drainClaims,
			plan.StepDriverOff:   (*nodeRun).driverOff,
			plan.StepPluginOn:    (*nodeRun).pluginOn,
			plan.StepRestore:     (*nodeRun).restore,
			plan.StepRetire:      (*nodeRun).retire,
		}
	}
	return map[plan.StepID]func(*nodeRun, context.Context) error{
		plan.StepMark:             (*nodeRun).mark,
		plan.StepDrain:            (*nodeRun).drain,
		plan.StepProbeBefore:      (*nodeRun).probeBefore,
		plan.StepPluginOff:        (*nodeRun).pluginOff,
		plan.StepPodResourcesList: (*nodeRun).podResourcesList,
		plan.StepDriverOn:         (*nodeRun).driverOn,
		plan.StepDriverReady:      (*nodeRun).driverReady,
		plan.StepDeviceClass:      (*nodeRun).deviceClass,
		plan.StepCanary:           (*nodeRun).canary,
		plan.StepOpen:             (*nodeRun).open,
		plan.StepRetire:           (*nodeRun).retire,
	}
}

// migrated says that a node's own record tells that it was switched and opened.
func migrated(s *cluster.NodeState) bool {
	return s != nil && s.Operation == string(plan.Migrate) && s.OpenedAt != nil
}
