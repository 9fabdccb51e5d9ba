package engine

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

// source is one watched list: an informer that remembers why it cannot see.
type source struct {
	what     string // "pods of node gpu-7", for messages
	informer cache.SharedIndexInformer
	// denied gets the first answer that no retry will change.
	denied chan error

	mu  sync.Mutex
	err error
}

// sourceSpec says what a source lists and what it keeps.
type sourceSpec struct {
	what      string
	client    any // tells the reflector what the client can do
	example   runtime.Object
	selector  string // field selector
	list      func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch     func(context.Context, metav1.ListOptions) (watch.Interface, error)
	transform cache.TransformFunc
	indexers  cache.Indexers
	// changed gets each object that came, changed or went, in its old and its new
	// form, transformed.
	changed func(objects ...any)
}

func newSource(spec sourceSpec) (*source, error) {
	s := &source{what: spec.what, denied: make(chan error, 1)}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = spec.selector
			list, err := spec.list(ctx, o)
			s.note(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = spec.selector
			w, err := spec.watch(ctx, o)
			s.note(ctx, err)
			return w, err
		},
	}
	s.informer = cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, spec.client), spec.example,
		cache.SharedIndexInformerOptions{Indexers: spec.indexers, ObjectDescription: spec.what})
	if err := s.informer.SetTransform(spec.transform); err != nil {
		return nil, fmt.Errorf("watch %s: %w", spec.what, err)
	}
	// The default handler writes to the process's log. What went wrong is told by
	// the wait that cannot go on.
	if err := s.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return nil, fmt.Errorf("watch %s: %w", spec.what, err)
	}
	_, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { spec.changed(o) },
		UpdateFunc: func(old, o any) { spec.changed(old, o) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			spec.changed(o)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", spec.what, err)
	}
	return s, nil
}

// run begins to list and watch, until ctx ends. client-go would log to standard
// error, which is not its to write to.
func (s *source) run(ctx context.Context) {
	go s.informer.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// note remembers the outcome of the last request.
func (s *source) note(ctx context.Context, err error) {
	// A version that is too old is answered by a new list, and says nothing about
	// what can be seen.
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
		select {
		case s.denied <- err:
		default:
		}
	}
}

// trouble says why the source may be behind, or "".
func (s *source) trouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return ""
	}
	return fmt.Sprintf("cannot watch %s: %v", s.what, s.err)
}
