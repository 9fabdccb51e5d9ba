// Package follow keeps lists of objects in step with the server by watches, and
// remembers why it cannot.
package follow

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Source is one watched list: an informer that remembers why it cannot see.
type Source struct {
	What     string // "pods of node gpu-7", for messages
	Informer cache.SharedIndexInformer
	// Denied gets the first answer that no retry will change.
	Denied chan error

	turned func() // may be nil

	mu  sync.Mutex
	err error
}

// Spec says what a Source lists and what it keeps.
type Spec struct {
	What      string
	Client    any // tells the reflector what the client can do
	Example   runtime.Object
	Selector  string // field selector
	List      func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch     func(context.Context, metav1.ListOptions) (watch.Interface, error)
	Transform cache.TransformFunc
	Indexers  cache.Indexers
	// Changed gets each object that came, changed or went, in its old and its new
	// form, transformed.
	Changed func(objects ...any)
	// Turned, which may be nil, is called when the list cannot be seen any more, and when
	// it can be again.
	Turned func()
}

// New makes a Source; it sends no request.
func New(spec Spec) (*Source, error) {
	s := &Source{What: spec.What, Denied: make(chan error, 1), turned: spec.Turned}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = spec.Selector
			list, err := spec.List(ctx, o)
			s.Note(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = spec.Selector
			w, err := spec.Watch(ctx, o)
			s.Note(ctx, err)
			return w, err
		},
	}
	s.Informer = cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, spec.Client), spec.Example,
		cache.SharedIndexInformerOptions{Indexers: spec.Indexers, ObjectDescription: spec.What})
	if err := s.Informer.SetTransform(spec.Transform); err != nil {
		return nil, fmt.Errorf("watch %s: %w", spec.What, err)
	}
	// The default handler writes to the process's log. What went wrong is told by
	// the wait that cannot go on.
	if err := s.Informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return nil, fmt.Errorf("watch %s: %w", spec.What, err)
	}
	_, err := s.Informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { spec.Changed(o) },
		UpdateFunc: func(old, o any) { spec.Changed(old, o) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			spec.Changed(o)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", spec.What, err)
	}
	return s, nil
}

// Run begins to list and watch, until ctx ends. client-go would log to standard
// error, which is not its to write to.
func (s *Source) Run(ctx context.Context) {
	go s.Informer.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// Note remembers the outcome of the last request.
func (s *Source) Note(ctx context.Context, err error) {
	// A version that is too old is answered by a new list, and says nothing about
	// what can be seen.
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	s.mu.Lock()
	turned := (s.err == nil) != (err == nil)
	s.err = err
	s.mu.Unlock()
	if turned && s.turned != nil {
		s.turned()
	}
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
		select {
		case s.Denied <- err:
		default:
		}
	}
}

// Trouble says why the source may be behind, or "".
func (s *Source) Trouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return ""
	}
	return fmt.Sprintf("cannot watch %s: %v", s.What, s.err)
}
