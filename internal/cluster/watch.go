package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/dramigrate/dramigrate/internal/follow"
)

// Watcher keeps a Snapshot in step with the cluster by watches: of all that says where
// nodes and pools stand, but not of budgets, and of claims only if they are asked for.
type Watcher struct {
	client    kubernetes.Interface
	namespace string
	parts     []watchedPart
	identity  Snapshot // Identity, and what of it could not be read

	mu      sync.Mutex
	changed chan struct{}
}

// watchedPart is one list, and what a Snapshot takes of each of its objects.
type watchedPart struct {
	name   string
	source *follow.Source
	take   func(*Snapshot, any) error
}

// NewWatcher makes a Watcher; it sends no request. Of the options it uses Namespace,
// without which journals and locks are not followed, and Claims.
func NewWatcher(client kubernetes.Interface, o LoadOptions) (*Watcher, error) {
	w := &Watcher{client: client, namespace: o.Namespace, changed: make(chan struct{})}
	core := client.CoreV1()
	maps, leases := core.ConfigMaps(o.Namespace), client.CoordinationV1().Leases(o.Namespace)
	journals := labels.Set{KindLabel: KindJournal}.String()
	parts := []func() error{
		func() error {
			return watchList(w, PartNodes, &corev1.Node{}, core.Nodes().List, core.Nodes().Watch, "",
				func(n *corev1.Node) any { s := SlimNode(n); return &s },
				func(s *Snapshot, o any) error { s.Nodes = append(s.Nodes, *o.(*corev1.Node)); return nil })
		},
		func() error {
			return watchList(w, PartPods, &corev1.Pod{}, core.Pods("").List, core.Pods("").Watch, "",
				func(p *corev1.Pod) any { return CachePod(p) },
				func(s *Snapshot, o any) error { s.Pods = append(s.Pods, o.(*CachedPod).Pod); return nil })
		},
		func() error {
			sets := client.AppsV1().DaemonSets("")
			return watchList(w, PartDaemonSets, &appsv1.DaemonSet{}, sets.List, sets.Watch, "",
				func(d *appsv1.DaemonSet) any { s := SlimDaemonSet(d); return &s },
				func(s *Snapshot, o any) error {
					s.DaemonSets = append(s.DaemonSets, *o.(*appsv1.DaemonSet))
					return nil
				})
		},
		func() error {
			slices := client.ResourceV1().ResourceSlices()
			return watchList(w, PartSlices, &resourcev1.ResourceSlice{}, slices.List, slices.Watch, "",
				func(d *resourcev1.ResourceSlice) any { s := SlimSlice(d); return &s },
				func(s *Snapshot, o any) error {
					s.Slices = append(s.Slices, *o.(*resourcev1.ResourceSlice))
					return nil
				})
		},
	}
	if o.Namespace != "" {
		parts = append(parts,
			func() error {
				return watchList(w, PartJournals, &corev1.ConfigMap{}, maps.List, maps.Watch, journals,
					func(m *corev1.ConfigMap) any { return m },
					func(s *Snapshot, o any) error {
						journal, err := DecodeJournal(o.(*corev1.ConfigMap))
						if err == nil {
							s.Journals = append(s.Journals, *journal)
						}
						return err
					})
			},
			func() error {
				return watchList(w, PartLocks, &coordinationv1.Lease{}, leases.List, leases.Watch, "",
					func(l *coordinationv1.Lease) any { return l },
					func(s *Snapshot, o any) error {
						s.Locks = append(s.Locks, LockOf(o.(*coordinationv1.Lease)))
						return nil
					})
			},
		)
	}
	if o.Claims {
		parts = append(parts,
			func() error {
				claims := client.ResourceV1().ResourceClaims("")
				return watchList(w, PartClaims, &resourcev1.ResourceClaim{}, claims.List, claims.Watch, "",
					func(c *resourcev1.ResourceClaim) any { s := SlimClaim(c); return &s },
					func(s *Snapshot, o any) error {
						s.Claims = append(s.Claims, *o.(*resourcev1.ResourceClaim))
						return nil
					})
			},
			func() error {
				classes := client.ResourceV1().DeviceClasses()
				return watchList(w, PartClasses, &resourcev1.DeviceClass{}, classes.List, classes.Watch, "",
					func(c *resourcev1.DeviceClass) any { s := SlimClass(c); return &s },
					func(s *Snapshot, o any) error {
						s.Classes = append(s.Classes, *o.(*resourcev1.DeviceClass))
						return nil
					})
			})
	}
	for _, add := range parts {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// watchList adds a list to those that are followed. slim is what the cache keeps of an
// object, take what a Snapshot takes of that.
func watchList[T any, L runtime.Object](
	w *Watcher, part string, example runtime.Object,
	list func(context.Context, metav1.ListOptions) (L, error),
	watcher func(context.Context, metav1.ListOptions) (watch.Interface, error),
	selector string, slim func(*T) any, take func(*Snapshot, any) error,
) error {
	source, err := follow.New(follow.Spec{
		What: part, Client: w.client, Example: example,
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return list(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return watcher(ctx, o)
		},
		Transform: func(o any) (any, error) {
			if full, ok := o.(*T); ok {
				return slim(full), nil
			}
			return o, nil
		},
		Changed: func(...any) { w.notify() },
		Turned:  w.notify,
	})
	if err != nil {
		return err
	}
	w.parts = append(w.parts, watchedPart{name: part, source: source, take: take})
	return nil
}

// firstLists is how long Start waits for the first answers.
const firstLists = time.Minute

// Start reads every list once and follows it until ctx ends. A list that may not be
// read becomes an Unknown of the snapshots, as with Load; only nodes must be readable.
func (w *Watcher) Start(ctx context.Context) error {
	l := &loader{client: w.client}
	for part, load := range map[string]func(context.Context) error{PartIdentity: l.identity, PartVersion: l.version} {
		if err := l.tolerate(part, load(ctx)); err != nil {
			return err
		}
	}
	w.identity = l.out
	for i := range w.parts {
		w.parts[i].source.Run(ctx)
	}
	waiting, stop := context.WithTimeoutCause(ctx, firstLists, fmt.Errorf("no answer within %s", firstLists))
	defer stop()
	for _, p := range w.parts {
		select {
		case <-p.source.Informer.HasSyncedChecker().Done():
		case err := <-p.source.Denied:
			if err := l.tolerate(p.name, err); err != nil {
				return err
			}
		case <-waiting.Done():
			why := p.source.Trouble()
			if why == "" {
				why = p.name
			}
			return fmt.Errorf("%s: %w", why, context.Cause(waiting))
		}
	}
	return nil
}

// Changed gives a channel that is closed at the next change. Take it before Snapshot,
// so that no change is missed.
func (w *Watcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

func (w *Watcher) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

// Snapshot is the cluster as it was seen last. A part that cannot be seen now, so that
// what is known of it may be outdated, is in its Unknown.
func (w *Watcher) Snapshot() *Snapshot {
	out := &Snapshot{Identity: w.identity.Identity}
	out.Unknown = append(out.Unknown, w.identity.Unknown...)
	for _, p := range w.parts {
		why := p.source.Trouble()
		for _, o := range p.source.Informer.GetStore().List() {
			if err := p.take(out, o); err != nil {
				why = err.Error()
			}
		}
		if why != "" {
			out.Unknown = append(out.Unknown, Unknown{Part: p.name, Reason: why})
		}
	}
	out.Sort()
	return out
}
