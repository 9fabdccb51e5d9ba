package engine

import (
	"context"
	"fmt"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// classStep is the DeviceClass of one run: the first node that gets there makes sure
// of it, the others find it done.
type classStep struct {
	mu   sync.Mutex
	done bool
}

// deviceClass makes sure that exactly one DeviceClass carries the resource's name.
// From then on the mapping is live for every pool of the cluster, so it is done once
// the first node publishes devices, under the lock of the shared objects. A live
// class is never edited and a second one never made: schedulers up to 1.37.2 lose
// the mapping over either (kubernetes/kubernetes#141103).
func (n *nodeRun) deviceClass(ctx context.Context) error {
	n.class.mu.Lock()
	defer n.class.mu.Unlock()
	if n.class.done {
		return nil
	}
	adopted, err := n.adoptClass(ctx)
	if err != nil {
		return err
	}
	if !adopted {
		if err := n.within(ctx, n.createClass); err != nil {
			return err
		}
	}
	n.class.done = true
	return nil
}

// adoptClass says whether the class is there already.
func (n *nodeRun) adoptClass(ctx context.Context) (bool, error) {
	list, err := n.client.ResourceV1().DeviceClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("list deviceclasses: %w", err)
	}
	now := &cluster.Snapshot{Identity: n.plan.Cluster, Classes: list.Items}
	winner, others := now.ClassFor(n.plan.Resource)
	switch {
	case len(others) > 0 && !now.KeepsMapping():
		carrying := []string{winner.Name}
		for i := range others {
			carrying = append(carrying, others[i].Name)
		}
		return false, fmt.Errorf("deviceclasses %s all carry %s: which one the scheduler uses may change at any moment; leave one", few(carrying), n.plan.Resource)
	case winner == nil && n.plan.Class != nil && n.plan.Class.Action == plan.Adopt:
		return false, fmt.Errorf("deviceclass/%s does not carry %s any more; make a new plan", n.plan.Class.Name, n.plan.Resource)
	case winner != nil && n.plan.Class != nil && n.plan.Class.Name != winner.Name:
		return false, fmt.Errorf("deviceclass/%s carries %s now, the plan says deviceclass/%s; make a new plan", winner.Name, n.plan.Resource, n.plan.Class.Name)
	}
	return winner != nil, nil
}

// createClass creates the plan's class, after a last look at who the mapping would
// hurt and at whether its selector means the devices that are published.
func (n *nodeRun) createClass(ctx context.Context, lock *Lock) error {
	if n.plan.Class == nil || n.plan.Class.Object == nil {
		return fmt.Errorf("no DeviceClass carries %s and the plan has none to create", n.plan.Resource)
	}
	// Another pool's run may have been first.
	if adopted, err := n.adoptClass(ctx); adopted || err != nil {
		return err
	}
	if err := n.mappingHurts(ctx); err != nil {
		return err
	}
	if err := n.selects(ctx, n.plan.Class.Object); err != nil {
		return err
	}
	class := n.plan.Class.Object.DeepCopy()
	if class.Labels == nil {
		class.Labels = map[string]string{}
	}
	class.Labels[ManagedByLabel] = FieldManager
	ref := cluster.ObjectRef{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass", Name: class.Name}
	if err := n.recordCreated(ctx, lock, ref); err != nil {
		return err
	}
	n.begun.Store(true)
	made, err := n.client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{FieldManager: FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("deviceclass/%s exists and does not carry %s; a live class is not edited: delete it if nothing uses it, or plan with another `class.name` in the file of --config", class.Name, n.plan.Resource)
	}
	if err != nil {
		return fmt.Errorf("deviceclass/%s: create: %w", class.Name, err)
	}
	ref.UID = made.UID
	if made.Spec.ExtendedResourceName == nil {
		return fmt.Errorf("deviceclass/%s: the server dropped extendedResourceName: the feature DRAExtendedResource is off", class.Name)
	}
	return n.recordCreated(ctx, lock, ref)
}

// mappingHurts runs the checks that the mapping depends on once more, on the cluster
// as it is now.
func (n *nodeRun) mappingHurts(ctx context.Context) error {
	snap, err := cluster.Load(ctx, n.client, cluster.LoadOptions{})
	if err != nil {
		return err
	}
	on, operation := n.plan.Pool, string(n.plan.Operation)
	var other cluster.NodePool
	if n.plan.Into != nil {
		other = cluster.NodePool{Name: on.Name, Selector: on.Selector}
		on, operation = n.plan.Into, checks.MigrateInto
	}
	pool, err := cluster.SelectPool(snap, on.Name, on.Selector)
	if err != nil {
		return err
	}
	findings := checks.BeforeMapping(checks.Input{
		Snapshot: snap, Inventory: gate.Detect(snap), Gate: n.plan.Gate, Pool: pool, Other: other, Resource: n.plan.Resource,
		Resources: n.plan.Resources, Driver: n.plan.Driver.Name, Operation: operation, Drain: n.plan.Settings.Drain,
		Skips: n.plan.Settings.Skips,
	})
	for _, f := range findings {
		switch {
		case f.Stops():
			return fmt.Errorf("%s %s: %s; %s", f.Code, f.Object, f.Message, f.Remedy)
		case f.Severity == checks.Warning:
			n.emit(event.Warned{Stamp: n.stamp(), Node: n.ref.Name, Message: fmt.Sprintf("%s %s: %s", f.Code, f.Object, f.Message)})
		}
	}
	return nil
}

// selects tries the class's selectors on the devices that the node publishes: one
// that selects none of them leaves every pod waiting, one that fails on a device
// stops the scheduler from allocating at all.
func (n *nodeRun) selects(ctx context.Context, class *resourcev1.DeviceClass) error {
	view, err := n.live.Fresh(ctx, n.ref.Name)
	if err != nil {
		return err
	}
	match, err := cluster.MatchClass(ctx, class, view.Slices)
	switch {
	case err != nil:
		return err
	case match.Failed != "":
		return fmt.Errorf("deviceclass/%s: its selectors fail on %s", class.Name, match.Failed)
	case len(match.Selected[n.plan.Driver.Name]) == 0:
		return fmt.Errorf("deviceclass/%s: selects none of the devices that %s publishes on the node", class.Name, n.plan.Driver.Name)
	}
	return nil
}

// recordCreated notes an object in the shared journal: before it is created without
// a UID, afterwards with it.
func (s *session) recordCreated(ctx context.Context, lock *Lock, ref cluster.ObjectRef) error {
	_, err := s.journals.Update(ctx, "", lock.Epoch(), func(j *cluster.Journal) error {
		if j.Shared == nil {
			j.Shared = &cluster.SharedRecord{}
		}
		for i, c := range j.Shared.Created {
			if c.Kind == ref.Kind && c.Namespace == ref.Namespace && c.Name == ref.Name {
				j.Shared.Created[i].ObjectRef = ref
				return nil
			}
		}
		j.Shared.Created = append(j.Shared.Created, cluster.CreatedObject{ObjectRef: ref})
		return nil
	})
	return err
}
