package engine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/dramigrate/dramigrate/internal/follow"
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
func watchOne(ctx context.Context, what, name string, l lister) (*follow.Source, <-chan struct{}, error) {
	wake := make(chan struct{}, 1)
	s, err := follow.New(follow.Spec{
		What: what, Client: l.client, Example: l.kind, List: l.list, Watch: l.watch,
		Selector: fields.OneTermEqualSelector("metadata.name", name).String(),
		Changed: func(...any) {
			select {
			case wake <- struct{}{}:
			default:
			}
		},
		Transform: func(o any) (any, error) { return o, nil },
	})
	if err != nil {
		return nil, nil, err
	}
	s.Run(ctx)
	return s, wake, nil
}
