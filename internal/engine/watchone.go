package engine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// lister is how one kind of object is listed and watched.
type lister struct {
	client any // tells the reflector what the client can do
	kind   runtime.Object
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// watchOne follows the object of that name until ctx ends. The channel gets a signal
// at each change.
func watchOne(ctx context.Context, what, name string, l lister) (*source, <-chan struct{}, error) {
	wake := make(chan struct{}, 1)
	s, err := newSource(sourceSpec{
		what: what, client: l.client, example: l.kind, list: l.list, watch: l.watch,
		selector: fields.OneTermEqualSelector("metadata.name", name).String(),
		changed: func(...any) {
			select {
			case wake <- struct{}{}:
			default:
			}
		},
		transform: func(o any) (any, error) { return o, nil },
	})
	if err != nil {
		return nil, nil, err
	}
	go s.informer.RunWithContext(ctx)
	return s, wake, nil
}
