package engine

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// unprepare takes back what prepare did, when no node uses it any more.
func (s *session) unprepare(ctx context.Context) error {
	if err := s.unused(ctx); err != nil {
		return err
	}
	return s.shared(ctx, map[plan.StepID]func(context.Context, plan.Step) error{
		plan.StepDeviceClassDelete: s.removeCreated,
		plan.StepDriverRemove:      s.removeDriver,
		plan.StepPluginInclude:     s.includePlugin,
		plan.StepRecord:            s.forgetPrepared,
	})
}

// unused asks the live cluster, not the journals, whether any node still needs the
// shared objects.
func (s *session) unused(ctx context.Context) error {
	snap, err := cluster.Load(ctx, s.client, cluster.LoadOptions{})
	if err != nil {
		return err
	}
	if len(snap.Unknown) > 0 {
		return &RefusedError{Reason: fmt.Sprintf("cannot see %s (%s): whether a node still uses the driver is unknown", snap.Unknown[0].Part, snap.Unknown[0].Reason)}
	}
	var using []string
	for i := range snap.Nodes {
		node := &snap.Nodes[i]
		_, marked := node.Annotations[cluster.StateAnnotation]
		if at, known := gate.Switched(node.Labels); marked || !known || at != gate.Plugin {
			using = append(using, node.Name)
		}
	}
	if len(using) > 0 {
		return &RefusedError{Reason: "nodes still use the shared objects: " + few(using), Hint: "roll their pools back first"}
	}
	return nil
}

// removeDriver deletes the driver that prepare installed, or gives one that was
// there before its former placement back.
func (s *session) removeDriver(ctx context.Context, step plan.Step) error {
	if slices.ContainsFunc(step.Changes, func(c plan.Change) bool { return c.Verb == "patch" }) {
		return s.includePlugin(ctx, step)
	}
	return s.removeCreated(ctx, step)
}

// removeCreated deletes objects that the tool created, each only if it is still the
// one that was created, and waits until they are gone.
func (s *session) removeCreated(ctx context.Context, step plan.Step) error {
	for _, c := range step.Changes {
		if err := s.remove(ctx, step, c.Object); err != nil {
			return fmt.Errorf("%s: %w", nameOf(c.Object), err)
		}
	}
	return nil
}

func (s *session) remove(ctx context.Context, step plan.Step, o plan.Object) error {
	journal, _, err := s.journals.Load(ctx, "")
	if err != nil {
		return err
	}
	ref, ok := createdBy(journal, o)
	if !ok {
		return fmt.Errorf("the journal does not say that dramigrate created it; it is left alone")
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(ref.APIVersion)
	object.SetKind(ref.Kind)
	object.SetNamespace(ref.Namespace)
	resource, err := s.resource(object)
	if err != nil {
		return err
	}
	have, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	uid := have.GetUID()
	if ref.UID != "" && ref.UID != uid || have.GetLabels()[ManagedByLabel] != FieldManager {
		s.emit(event.Warned{Stamp: s.stamp(), Message: nameOf(o) + " is not the object that was created; it is left alone"})
		return nil
	}
	s.begun.Store(true)
	foreground := metav1.DeletePropagationForeground
	err = resource.Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &foreground})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete: %w", err)
	}
	return s.gone(ctx, step, resource, have)
}

func createdBy(j *cluster.Journal, o plan.Object) (cluster.ObjectRef, bool) {
	if j.Shared == nil {
		return cluster.ObjectRef{}, false
	}
	for _, c := range j.Shared.Created {
		if c.Kind == o.Kind && c.Namespace == o.Namespace && c.Name == o.Name {
			return c.ObjectRef, true
		}
	}
	return cluster.ObjectRef{}, false
}

// includePlugin sends the patches that give a DaemonSet its former placement and
// update strategy back.
func (s *session) includePlugin(ctx context.Context, step plan.Step) error {
	if !slices.ContainsFunc(step.Changes, func(c plan.Change) bool { return c.Verb == "patch" }) {
		return nil
	}
	ds, err := s.sendPatches(ctx, step)
	if err != nil {
		return err
	}
	return s.rolledOut(ctx, step, ds, asWritten)
}

// forgetPrepared empties the record of the shared objects; the runs stay.
func (s *session) forgetPrepared(ctx context.Context, _ plan.Step) error {
	_, err := s.journals.Update(ctx, "", s.lock.Epoch(), func(j *cluster.Journal) error {
		j.Shared = nil
		return nil
	})
	return err
}
