package engine

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// rolledOut waits until the DaemonSet controller has acted on the DaemonSet as it
// was written last.
func (s *session) rolledOut(ctx context.Context, step plan.Step, ds *appsv1.DaemonSet, lasts func(*appsv1.DaemonSet) error) error {
	what, limit := "daemonset/"+ds.Namespace+"/"+ds.Name+" to roll out", time.Minute
	if len(step.Waits) > 0 {
		what, limit = step.Waits[0].For, step.Waits[0].Deadline.Duration
	}
	o := WaitOptions{Step: step.ID, For: what, Deadline: limit, Clock: s.deps.Clock, Sink: s.deps.Sink}
	return s.waitForSet(ctx, o, ds.Namespace, ds.Name, func(now *appsv1.DaemonSet) (string, error) {
		if now.UID != ds.UID {
			return "it was made anew", nil
		}
		if why := notRolledOut(now, ds.Generation); why != "" {
			return why, nil
		}
		return "", lasts(now)
	})
}

// asWritten is for a DaemonSet that nobody but this run writes.
func asWritten(*appsv1.DaemonSet) error { return nil }

// byOwner waits until the owner of a DaemonSet has made the edit that the step shows.
// Owners may make the object anew, so it is known by its name.
func (s *session) byOwner(ctx context.Context, step plan.Step, think func(*appsv1.DaemonSet) (gate.Edit, error)) error {
	if len(step.Waits) == 0 {
		return fmt.Errorf("%s: its owner has not made the change that the plan shows, and the plan does not wait for it", nameOf(*step.Target))
	}
	o := WaitOptions{Step: step.ID, For: nameOf(*step.Target) + ": " + step.Waits[0].For, Deadline: step.Waits[0].Deadline.Duration,
		Clock: s.deps.Clock, Sink: s.deps.Sink}
	err := s.waitForSet(ctx, o, step.Target.Namespace, step.Target.Name, func(now *appsv1.DaemonSet) (string, error) {
		edit, err := think(now)
		switch {
		case err != nil:
			return err.Error(), nil
		case !edit.Empty():
			return "the change has not arrived", nil
		}
		return notRolledOut(now, 0), nil
	})
	return hinted(err, "take the change that the plan shows to the owner, and run prepare again")
}

// waitForSet waits for a watched DaemonSet.
func (s *session) waitForSet(ctx context.Context, o WaitOptions, namespace, name string, cond func(*appsv1.DaemonSet) (string, error)) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	sets := s.client.AppsV1().DaemonSets(namespace)
	source, wake, err := watchOne(watching, "daemonset "+namespace+"/"+name, name, lister{
		client: s.client, kind: &appsv1.DaemonSet{},
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return sets.List(ctx, o) },
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return sets.Watch(ctx, o) },
	})
	if err != nil {
		return err
	}
	return WaitFor(ctx, o, func() <-chan struct{} { return wake }, func() (string, error) {
		if why := source.Trouble(); why != "" {
			return why, nil
		}
		for _, o := range source.Informer.GetStore().List() {
			return cond(o.(*appsv1.DaemonSet))
		}
		return "it is not there", nil
	})
}

// notRolledOut says what a DaemonSet still lacks. Under OnDelete nothing is rolled
// out: pods get the new template when somebody deletes them.
func notRolledOut(ds *appsv1.DaemonSet, generation int64) string {
	s := ds.Status
	switch {
	case s.ObservedGeneration < max(generation, ds.Generation):
		return "the DaemonSet controller has not seen the change yet"
	case ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		return ""
	case s.UpdatedNumberScheduled < s.DesiredNumberScheduled:
		return fmt.Sprintf("%d of %d pods run the new template", s.UpdatedNumberScheduled, s.DesiredNumberScheduled)
	case s.NumberAvailable < s.DesiredNumberScheduled:
		return fmt.Sprintf("%d of %d pods are available", s.NumberAvailable, s.DesiredNumberScheduled)
	}
	return ""
}
