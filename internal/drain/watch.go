package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// podWatch follows the pods of one node.
type podWatch struct {
	informer cache.SharedIndexInformer
	denied   chan error // the first answer that no retry will change

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	err     error         // of the last list or watch
}

func byNode(node string) string {
	return fields.OneTermEqualSelector("spec.nodeName", node).String()
}

func newPodWatch(client kubernetes.Interface, node string) (*podWatch, error) {
	w := &podWatch{changed: make(chan struct{}), denied: make(chan error, 1)}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = byNode(node)
			list, err := client.CoreV1().Pods("").List(ctx, o)
			w.note(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = byNode(node)
			stream, err := client.CoreV1().Pods("").Watch(ctx, o)
			w.note(ctx, err)
			return stream, err
		},
	}
	w.informer = cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client),
		&corev1.Pod{}, cache.SharedIndexInformerOptions{ObjectDescription: "pods of node " + node})
	err := w.informer.SetTransform(func(o any) (any, error) {
		if p, ok := o.(*corev1.Pod); ok {
			p.ManagedFields = nil
		}
		return o, nil
	})
	if err != nil {
		return nil, err
	}
	// The default handler writes to the process's log; the heartbeat tells instead.
	if err := w.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return nil, err
	}
	_, err = w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.notify() },
		UpdateFunc: func(any, any) { w.notify() },
		DeleteFunc: func(any) { w.notify() },
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (w *podWatch) note(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		select {
		case w.denied <- err:
		default:
		}
	}
}

func (w *podWatch) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

// next is closed at the next change.
func (w *podWatch) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// trouble says why the pods may be behind, or "".
func (w *podWatch) trouble() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		return ""
	}
	return fmt.Sprintf("cannot watch the node's pods: %v", w.err)
}

// pods are the node's pods, sorted by namespace and name.
func (w *podWatch) pods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, o := range w.informer.GetStore().List() {
		out = append(out, o.(*corev1.Pod))
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return strings.Compare(ref(a), ref(b)) })
	return out
}

// find returns the very pod, nil if it is gone, whoever has its name now.
func (w *podWatch) find(p *corev1.Pod) *corev1.Pod {
	o, ok, err := w.informer.GetStore().GetByKey(ref(p))
	if err != nil || !ok {
		return nil
	}
	if now := o.(*corev1.Pod); now.UID == p.UID {
		return now
	}
	return nil
}

func ref(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }
