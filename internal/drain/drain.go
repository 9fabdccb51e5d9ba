// Package drain gets pods off a node by the eviction API: it respects budgets, says
// which pod and which budget is in the way, and never deletes a pod itself.
package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Drainer gets pods off nodes.
type Drainer interface {
	// Drain evicts the pods of a node that want says yes to, and returns when none
	// is left; why is told in messages. Pods that arrive meanwhile are evicted as
	// well. It gives a *RefusedError for pods that can never be evicted as things
	// are, and a *TimeoutError that names what is left at the deadline. report may be
	// nil; it is called by one goroutine at a time. Drain may be called for several
	// nodes at once.
	Drain(ctx context.Context, node string, want func(*corev1.Pod) (evict bool, why string), report func(Event)) error
}

// Options say what may be evicted and how hard to try.
type Options struct {
	Client kubernetes.Interface
	Clock  clock.Clock
	// Timeout is how long one node may take.
	Timeout time.Duration
	// MaxConcurrent is how many eviction requests of a node may be under way at
	// once; 10 if it is 0.
	MaxConcurrent int
	// DeleteEmptyDirData allows evictions that lose a pod's emptyDir volumes.
	DeleteEmptyDirData bool
	// EvictUnmanaged allows evictions of pods that nothing will create again.
	EvictUnmanaged bool
}

const (
	defaultConcurrent = 10
	heartbeat         = 15 * time.Second
)

// Evictor is the Drainer by kubectl's filters and the eviction API.
type Evictor struct{ o Options }

var _ Drainer = (*Evictor)(nil)

// New makes an Evictor.
func New(o Options) *Evictor {
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = defaultConcurrent
	}
	return &Evictor{o: o}
}

// run is one drain of one node.
type run struct {
	d        *Evictor
	node     string
	want     func(*corev1.Pod) (bool, string)
	begin    time.Time
	deadline time.Time
	watch    *podWatch
	budgets  *budgets
	slots    chan struct{} // one for each eviction request under way
	settled  chan struct{} // a signal that a target failed
	work     sync.WaitGroup

	reporting sync.Mutex
	report    func(Event)

	targets map[types.UID]*target // the main loop's alone
	skipped map[types.UID]bool    // wanted pods that no eviction is for
}

// Drain implements Drainer.
func (d *Evictor) Drain(ctx context.Context, node string, want func(*corev1.Pod) (bool, string), report func(Event)) error {
	watch, err := newPodWatch(d.o.Client, node)
	if err != nil {
		return fmt.Errorf("node/%s: drain: %w", node, err)
	}
	now := d.o.Clock.Now()
	r := &run{
		d: d, node: node, want: want, report: report, begin: now, deadline: now.Add(d.o.Timeout), watch: watch,
		budgets: &budgets{client: d.o.Client, clock: d.o.Clock},
		slots:   make(chan struct{}, d.o.MaxConcurrent), settled: make(chan struct{}, 1),
		targets: map[types.UID]*target{}, skipped: map[types.UID]bool{},
	}
	work, cancel := context.WithCancel(ctx)
	// client-go would log to standard error, which is not its to write to.
	quiet := klog.NewContext(work, logr.Discard())
	r.work.Go(func() { watch.informer.RunWithContext(quiet) })
	err = r.loop(work)
	// Nothing may be sent after Drain returned.
	cancel()
	r.work.Wait()
	var timeout *TimeoutError
	var refused *RefusedError
	if err != nil && !errors.As(err, &timeout) && !errors.As(err, &refused) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("node/%s: drain: %w", node, err)
	}
	return err
}

// loop follows the node's pods until none is left that is wanted, or something
// ends it.
func (r *run) loop(ctx context.Context) error {
	end := r.d.o.Clock.NewTimer(r.d.o.Timeout)
	defer end.Stop()
	select {
	case <-r.watch.informer.HasSyncedChecker().Done():
	case err := <-r.watch.denied:
		return fmt.Errorf("cannot watch the node's pods: %w", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-end.C():
		return r.timeout()
	}
	beat := r.d.o.Clock.NewTimer(heartbeat)
	defer func() { beat.Stop() }()
	for {
		changed := r.watch.next()
		r.tally()
		if err := r.failed(); err != nil {
			return err
		}
		if err := r.begun(ctx); err != nil {
			return err
		}
		if len(r.targets) == 0 {
			left, err := r.confirm(ctx)
			if err != nil {
				return err
			}
			if !left {
				return nil
			}
		}
		select {
		case <-changed:
		case <-r.settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end.C():
			r.tally()
			return r.timeout()
		case <-beat.C():
			now := r.d.o.Clock.Now()
			r.tell(Waiting{When: now, Remaining: r.remaining(), Since: r.begin, Deadline: r.deadline})
			beat = r.d.o.Clock.NewTimer(heartbeat)
		}
	}
}

// tally takes the targets out that are gone.
func (r *run) tally() {
	for uid, t := range r.targets {
		if r.watch.find(t.pod) != nil {
			continue
		}
		close(t.gone)
		delete(r.targets, uid)
		now := r.d.o.Clock.Now()
		r.tell(Evicted{When: now, Pod: ref(t.pod), Took: now.Sub(t.began())})
	}
}

// failed collects the pods whose eviction has failed for good. One is enough to
// end the drain: the node cannot be emptied, and every further eviction would
// disturb somebody for nothing.
func (r *run) failed() error {
	var pods []Remaining
	var cause error
	for _, t := range r.sorted() {
		if rest, err := t.failure(); err != nil {
			pods = append(pods, rest)
			cause = errors.Join(cause, err)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return &RefusedError{Node: r.node, Pods: pods, cause: cause}
}

// begun starts what is wanted and not yet a target.
func (r *run) begun(ctx context.Context) error {
	var fresh []corev1.Pod
	why := map[types.UID]string{}
	for _, p := range r.watch.pods() {
		if r.targets[p.UID] != nil || r.skipped[p.UID] {
			continue
		}
		if yes, reason := r.want(p); yes {
			fresh = append(fresh, *p)
			why[p.UID] = reason
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	pods, warnings, err := r.d.filter(ctx, r.node, fresh)
	if err != nil {
		return err
	}
	if warnings != "" {
		r.tell(Noted{When: r.d.o.Clock.Now(), Message: warnings})
	}
	if err := r.evictable(ctx, pods); err != nil {
		return err
	}
	for i := range fresh {
		r.skipped[fresh[i].UID] = true
	}
	for i := range pods {
		p := &pods[i]
		delete(r.skipped, p.UID)
		t := &target{run: r, pod: p, why: why[p.UID], gone: make(chan struct{}), since: r.d.o.Clock.Now()}
		r.targets[p.UID] = t
		r.work.Go(func() { t.evict(ctx) })
	}
	return nil
}

// evictable finds, before anything is evicted, the pods that the server would
// refuse for ever: those that several budgets cover.
func (r *run) evictable(ctx context.Context, pods []corev1.Pod) error {
	var never []Remaining
	for i := range pods {
		if ignoresBudgets(&pods[i]) {
			continue
		}
		// Budgets that cannot be read are the server's to apply; it names them.
		names, err := r.budgets.of(ctx, &pods[i])
		if err == nil && len(names) > 1 {
			never = append(never, Remaining{Pod: ref(&pods[i]), Budgets: names, Reason: severalBudgets})
		}
	}
	if len(never) > 0 {
		return &RefusedError{Node: r.node, Pods: never}
	}
	return nil
}

// confirm asks the server, past all caches, whether a wanted pod is left that the
// watch has not shown yet.
func (r *run) confirm(ctx context.Context) (left bool, err error) {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.d.o.Client.CoreV1().Pods("").List(ctx, o)
	})
	err = pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: byNode(r.node)}, func(o runtime.Object) error {
		p, ok := o.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("the server sent a %T", o)
		}
		if yes, _ := r.want(p); yes && !r.skipped[p.UID] {
			left = true
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("list the pods that are left: %w", err)
	}
	return left, nil
}

func (r *run) sorted() []*target {
	out := make([]*target, 0, len(r.targets))
	for _, t := range r.targets {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *target) int { return strings.Compare(ref(a.pod), ref(b.pod)) })
	return out
}

func (r *run) remaining() []Remaining {
	var out []Remaining
	for _, t := range r.sorted() {
		out = append(out, t.remaining())
	}
	if why := r.watch.trouble(); why != "" {
		out = append(out, Remaining{Pod: "all pods", Reason: why})
	} else if !r.watch.informer.HasSynced() {
		out = append(out, Remaining{Pod: "all pods", Reason: "the server has not listed the node's pods"})
	} else if len(out) == 0 {
		out = append(out, Remaining{Pod: "a pod", Reason: "the watch has not shown it yet"})
	}
	return out
}

func (r *run) timeout() error {
	return &TimeoutError{Node: r.node, After: r.d.o.Timeout, Remaining: r.remaining()}
}

func (r *run) tell(e Event) {
	if r.report == nil {
		return
	}
	r.reporting.Lock()
	defer r.reporting.Unlock()
	r.report(e)
}
