package engine

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/dramigrate/dramigrate/internal/plan"
)

// gone waits until an object that was deleted is really away, finalizers and all.
func (s *session) gone(ctx context.Context, step plan.Step, resource dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	what, limit := object.GetKind()+" "+object.GetName()+" to go", 2*time.Minute
	if len(step.Waits) > 0 {
		limit = step.Waits[0].Deadline.Duration
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	source, wake, err := watchOne(watching, object.GetKind()+" "+object.GetName(), object.GetName(), lister{
		client: s.dynamic, kind: &unstructured.Unstructured{},
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) },
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, o)
		},
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
			if !source.Informer.HasSynced() {
				return "it has not been looked for yet", nil
			}
			for _, o := range source.Informer.GetStore().List() {
				if u, ok := o.(*unstructured.Unstructured); ok && u.GetUID() == object.GetUID() {
					return "it is still there", nil
				}
			}
			// The watch may be behind; one read tells.
			have, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && have.GetUID() != object.GetUID() {
				return "", nil
			}
			return "it is still there", nil
		})
}
