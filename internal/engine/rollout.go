package engine

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/dramigrate/dramigrate/internal/plan"
)

// rolledOut waits until the DaemonSet controller has acted on the DaemonSet as it
// was written last.
func (s *session) rolledOut(ctx context.Context, step plan.Step, ds *appsv1.DaemonSet) error {
	what, limit := "daemonset/"+ds.Namespace+"/"+ds.Name+" to roll out", time.Minute
	if len(step.Waits) > 0 {
		what, limit = step.Waits[0].For, step.Waits[0].Deadline.Duration
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	sets := s.client.AppsV1().DaemonSets(ds.Namespace)
	source, wake, err := watchOne(watching, "daemonset "+ds.Namespace+"/"+ds.Name, ds.Name, lister{
		client: s.client, kind: &appsv1.DaemonSet{},
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return sets.List(ctx, o) },
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return sets.Watch(ctx, o) },
	})
	if err != nil {
		return err
	}
	return WaitFor(ctx, WaitOptions{Step: step.ID, For: what, Deadline: limit, Clock: s.deps.Clock, Sink: s.deps.Sink},
		func() <-chan struct{} { return wake },
		func() (string, error) {
			if why := source.Trouble(); why != "" {
				return why, nil
			}
			for _, o := range source.Informer.GetStore().List() {
				now := o.(*appsv1.DaemonSet)
				if now.UID == ds.UID {
					return notRolledOut(now, ds.Generation), nil
				}
			}
			return "it has not been seen yet", nil
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
