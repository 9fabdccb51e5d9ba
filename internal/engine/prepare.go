package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// prepare changes the shared objects as the plan says, once for the whole cluster.
func (s *session) prepare(ctx context.Context) error {
	return s.shared(ctx, map[plan.StepID]func(context.Context, plan.Step) error{
		plan.StepNamespace:     func(context.Context, plan.Step) error { return nil }, // before the lock, which needs it
		plan.StepPluginExclude: s.excludePlugin,
		plan.StepPluginByOwner: func(ctx context.Context, step plan.Step) error { return s.byOwner(ctx, step, gate.Exclude) },
		plan.StepDriverInstall: s.installDriver,
		plan.StepDriverPlace:   s.placeDriver,
		plan.StepDriverByOwner: func(ctx context.Context, step plan.Step) error { return s.byOwner(ctx, step, gate.PlaceDriver) },
		plan.StepRecord:        s.recordPrepared,
	})
}

// shared does the plan's steps on shared objects in their order.
func (s *session) shared(ctx context.Context, steps map[plan.StepID]func(context.Context, plan.Step) error) error {
	for _, step := range s.plan.Shared {
		do, ok := steps[step.ID]
		if !ok {
			return fmt.Errorf("the plan has a step %q that this version does not know", step.ID)
		}
		at := s.deps.Clock.Now()
		s.emit(event.StepStarted{Stamp: event.StampAt(at), Step: step.ID, Title: step.Title})
		if err := do(ctx, step); err != nil {
			err = fmt.Errorf("%s: %w", step.ID, err)
			s.emit(event.StepFailed{Stamp: s.stamp(), Step: step.ID, Err: err})
			return err
		}
		s.emit(event.StepDone{Stamp: s.stamp(), Step: step.ID, Took: s.deps.Clock.Since(at)})
	}
	return nil
}

// ensureNamespace makes the tool's namespace. Its pods read a root-owned socket of
// the kubelet through a hostPath, which only the level "privileged" lets in.
func (s *session) ensureNamespace(ctx context.Context) error {
	ns := plan.Namespace(s.deps.Namespace)
	_, err := s.bare.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace/%s: create: %w", s.deps.Namespace, err)
	}
	return nil
}

// namespaceGone says that the tool's namespace is surely not there.
func (s *session) namespaceGone(ctx context.Context) bool {
	_, err := s.bare.CoreV1().Namespaces().Get(ctx, s.deps.Namespace, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func (s *session) excludePlugin(ctx context.Context, step plan.Step) error {
	return s.editDaemonSet(ctx, step, gate.Exclude)
}

func (s *session) placeDriver(ctx context.Context, step plan.Step) error {
	return s.editDaemonSet(ctx, step, gate.PlaceDriver)
}

// editDaemonSet records what the fields hold, sends the plan's patches and waits for
// the DaemonSet controller. The patches test what they replace, so that one which
// was thought out for another state of the object changes nothing.
func (s *session) editDaemonSet(ctx context.Context, step plan.Step, think func(*appsv1.DaemonSet) (gate.Edit, error)) error {
	ds, err := s.client.AppsV1().DaemonSets(step.Target.Namespace).Get(ctx, step.Target.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("%s: read: %w", nameOf(*step.Target), err)
	}
	edit, err := think(ds)
	if err != nil {
		return err
	}
	if !edit.Empty() {
		images, err := preImages(ds, edit, s.plan.Settings.PluginRollout == plan.OnDelete && step.ID == plan.StepPluginExclude)
		if err != nil {
			return err
		}
		if err := s.recordPreImages(ctx, images); err != nil {
			return err
		}
		if ds, err = s.sendPatches(ctx, step); err != nil {
			return err
		}
	}
	lasts := func(now *appsv1.DaemonSet) error {
		if left, err := think(now); err != nil || !left.Empty() {
			return fmt.Errorf("%s: somebody has taken the edit back: %s; have its owner make the change that the plan shows, and wait for it with --wait-for-owner",
				nameOf(*step.Target), writers(now))
		}
		return nil
	}
	if err := s.rolledOut(ctx, step, ds, lasts); err != nil || !s.plan.Settings.EditOwned {
		return err
	}
	// An owner that looks all the time has looked by then.
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.deps.Clock.After(ownerLooks):
	}
	if ds, err = s.client.AppsV1().DaemonSets(step.Target.Namespace).Get(ctx, step.Target.Name, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("%s: read: %w", nameOf(*step.Target), err)
	}
	return lasts(ds)
}

// ownerLooks is how long an edit of an object that somebody owns is watched.
const ownerLooks = 5 * time.Second

// writers are the field managers of an object besides this tool and the controller that
// writes its status.
func writers(ds *appsv1.DaemonSet) string {
	var names []string
	for _, m := range ds.ManagedFields {
		if m.Manager != FieldManager && m.Subresource == "" {
			names = append(names, m.Manager)
		}
	}
	if len(names) == 0 {
		return "who, it does not tell"
	}
	slices.Sort(names)
	return "field managers " + strings.Join(slices.Compact(names), ", ")
}

// preImages are the fields that the edit changes, as they are now.
func preImages(ds *appsv1.DaemonSet, edit gate.Edit, onDelete bool) ([]cluster.PreImage, error) {
	ref := cluster.ObjectRef{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: ds.Namespace, Name: ds.Name, UID: ds.UID}
	affinity, err := edit.PreImage(ref)
	if err != nil {
		return nil, err
	}
	out := []cluster.PreImage{affinity}
	if onDelete && ds.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
		strategy, err := gate.StrategyPreImage(ds, ref)
		if err != nil {
			return nil, err
		}
		out = append(out, strategy)
	}
	return out, nil
}

// recordPreImages keeps the first record of each field: a run that resumes sees what
// its forerunner made of it.
func (s *session) recordPreImages(ctx context.Context, images []cluster.PreImage) error {
	_, err := s.journals.Update(ctx, "", s.lock.Epoch(), func(j *cluster.Journal) error {
		if j.Shared == nil {
			j.Shared = &cluster.SharedRecord{}
		}
		for _, image := range images {
			if !recordedImage(j.Shared.PreImages, image) {
				j.Shared.PreImages = append(j.Shared.PreImages, image)
			}
		}
		return nil
	})
	return err
}

func recordedImage(list []cluster.PreImage, image cluster.PreImage) bool {
	for _, have := range list {
		if have.Object == image.Object && have.Path == image.Path {
			return true
		}
	}
	return false
}

// sendPatches sends the plan's patches of a DaemonSet and returns it as it is then.
func (s *session) sendPatches(ctx context.Context, step plan.Step) (*appsv1.DaemonSet, error) {
	sets := s.client.AppsV1().DaemonSets(step.Target.Namespace)
	var ds *appsv1.DaemonSet
	for _, c := range step.Changes {
		if c.Verb != "patch" {
			continue
		}
		s.begun.Store(true)
		var err error
		ds, err = sets.Patch(ctx, step.Target.Name, types.JSONPatchType, []byte(c.Patch), metav1.PatchOptions{FieldManager: FieldManager})
		if testFailed(err) {
			return nil, fmt.Errorf("%s: it is not any more as the plan saw it; make a new plan", nameOf(*step.Target))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: patch: %w", nameOf(*step.Target), err)
		}
	}
	if ds == nil {
		return nil, fmt.Errorf("%s: the plan has no patch for it", nameOf(*step.Target))
	}
	return ds, nil
}

// installDriver applies the driver's manifests as the plan shows them, under the
// tool's field manager. An object that somebody else has made is left alone.
func (s *session) installDriver(ctx context.Context, step plan.Step) error {
	for _, c := range step.Changes {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(c.Body), &object.Object); err != nil {
			return fmt.Errorf("%s: %w", nameOf(c.Object), err)
		}
		if err := s.apply(ctx, object); err != nil {
			return fmt.Errorf("%s: %w", nameOf(c.Object), err)
		}
		if object.GetKind() == "DaemonSet" {
			ds, err := s.client.AppsV1().DaemonSets(object.GetNamespace()).Get(ctx, object.GetName(), metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("%s: read: %w", nameOf(c.Object), err)
			}
			if err := s.rolledOut(ctx, step, ds, asWritten); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) apply(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := s.resource(object)
	if err != nil {
		return err
	}
	ref := cluster.ObjectRef{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	switch have, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case have.GetLabels()[ManagedByLabel] != FieldManager:
		return fmt.Errorf("it exists already and was not made by dramigrate: remove it from the manifests, or uninstall that driver first")
	}
	if err := s.recordCreated(ctx, s.lock, ref); err != nil {
		return err
	}
	s.begun.Store(true)
	made, err := resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	ref.UID = made.GetUID()
	return s.recordCreated(ctx, s.lock, ref)
}

// resource is the client for an object's kind and namespace.
func (s *session) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("the server does not know the kind: %w", err)
	}
	if object.GetNamespace() == "" {
		return s.dynamic.Resource(mapping.Resource), nil
	}
	return s.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}

// recordPrepared keeps what later runs need to know of the driver's manifests.
func (s *session) recordPrepared(ctx context.Context, _ plan.Step) error {
	_, err := s.journals.Update(ctx, "", s.lock.Epoch(), func(j *cluster.Journal) error {
		if j.Shared == nil {
			j.Shared = &cluster.SharedRecord{}
		}
		j.Shared.DriverSource = s.plan.Driver.Source
		if s.plan.Class != nil && s.plan.Class.Action == plan.Create {
			j.Shared.HeldClass = s.plan.Class.Object
		}
		return nil
	})
	return err
}

func nameOf(o plan.Object) string {
	if o.Namespace == "" {
		return fmt.Sprintf("%s/%s", o.Kind, o.Name)
	}
	return fmt.Sprintf("%s/%s/%s", o.Kind, o.Namespace, o.Name)
}
