package helperpod

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// sighting is what the watches show of a helper pod: the pod, the claims that the
// scheduler makes for it, and the warnings about it.
//
// It keeps what was, not only what is: a claim is deallocated and deleted as soon
// as its pod has ended (pkg/controller/resourceclaim/controller.go, v1.37.2), which
// for a canary is before anybody could ask for it. For the same reason the watches
// begin before the pod is created.
type sighting struct {
	stop  context.CancelFunc
	feeds []*feed

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	pods    map[types.UID]*seenPod
}

// feed is one watch.
type feed struct {
	what     string
	informer cache.SharedIndexInformer
	// optional feeds only explain; nothing waits for them.
	optional bool
	trouble  error // of the last request, nil while the watch works; guarded by sighting.mu
}

// seenPod is what was seen of one pod, by its UID: a leftover and the pod that
// replaces it have the same name.
type seenPod struct {
	pod     *corev1.Pod
	gone    bool
	claims  map[string]seenClaim
	warning warning
	// unmounted are the volumes that the kubelet could not mount. Each is told of by an
	// event of its own, so that the newest does not name all.
	unmounted map[string]bool
}

// warning is a warning event about a pod.
type warning struct{ reason, message string }

// unmountedVolume is how the kubelet names a volume of the pod that it could not mount
// (pkg/volume/util/operationexecutor/operation_executor.go, generateVolumeMsg, v1.37.2).
var unmountedVolume = regexp.MustCompile(`for volume "([^"]+)"`)

// volume is the volume that could not be mounted; "" if the warning names none.
func (w warning) volume() string {
	if w.reason != "FailedMount" {
		return ""
	}
	if m := unmountedVolume.FindStringSubmatch(w.message); m != nil {
		return m[1]
	}
	return ""
}

func (w warning) String() string { return reasoned(w.reason, w.message) }

// seenClaim is a claim that the scheduler made for the pod.
type seenClaim struct {
	newest *resourcev1.ResourceClaim
	// held is the newest version that had an allocation.
	held *resourcev1.ResourceClaim
	gone bool
}

// view is a copy of what was seen of one pod.
type view struct {
	pod    *corev1.Pod // nil if it was not seen yet
	gone   bool
	claims map[string]seenClaim
	// warning is the newest warning about the pod; zero if there is none.
	warning warning
	// unmounted are the volumes that the warnings name as not mounted.
	unmounted map[string]bool
	// trouble says which watch does not work; empty if all of them do.
	trouble string
}

// watch begins to follow a job's pod. The watches last until stop.
func (r *Runner) watch(ctx context.Context, j *job) *sighting {
	ctx, stop := context.WithCancel(ctx)
	s := &sighting{stop: stop, changed: make(chan struct{}), pods: map[types.UID]*seenPod{}}
	core, namespace := r.client.CoreV1(), j.pod.Namespace

	byName := fields.OneTermEqualSelector(metav1.ObjectNameField, j.pod.Name).String()
	s.follow(ctx, r.client, &feed{what: "pods"}, &corev1.Pod{}, s.seePod, byName,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Pods(namespace).List(ctx, o)
		},
		core.Pods(namespace).Watch)

	aboutPod := fields.Set{"involvedObject.kind": "Pod", "involvedObject.name": j.pod.Name}.String()
	s.follow(ctx, r.client, &feed{what: "events", optional: true}, &corev1.Event{}, s.seeEvent, aboutPod,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Events(namespace).List(ctx, o)
		},
		core.Events(namespace).Watch)

	if j.driver != "" {
		claims := r.client.ResourceV1().ResourceClaims(namespace)
		s.follow(ctx, r.client, &feed{what: "resourceclaims"}, &resourcev1.ResourceClaim{}, s.seeClaim, "",
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return claims.List(ctx, o) },
			claims.Watch)
	}
	return s
}

// follow starts one watch, whose objects see is told of, one after another.
func (s *sighting) follow(ctx context.Context, client any, f *feed, example runtime.Object, see func(o any, gone bool), selector string,
	list cache.ListWithContextFunc, watchFrom cache.WatchFuncWithContext) {
	// What worked again is known by the success of the request that failed before.
	answered := func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if (f.trouble == nil) != (err == nil) {
			defer s.notifyLocked()
		}
		f.trouble = err
	}
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			out, err := list(ctx, o)
			answered(err)
			return out, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			out, err := watchFrom(ctx, o)
			answered(err)
			return out, err
		},
	}, client)
	f.informer = cache.NewSharedIndexInformer(lw, example, 0, nil)
	tell := func(o any, gone bool) {
		if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		see(o, gone)
		s.notifyLocked()
	}
	// The error is of a stopped informer, and this one has not begun.
	_, _ = f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { tell(o, false) },
		UpdateFunc: func(_, o any) { tell(o, false) },
		DeleteFunc: func(o any) { tell(o, true) },
	})
	s.feeds = append(s.feeds, f)
	go f.informer.RunWithContext(ctx)
	if !f.optional {
		go func() {
			if cache.WaitForCacheSync(ctx.Done(), f.informer.HasSynced) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.notifyLocked()
			}
		}()
	}
}

func (s *sighting) seePod(o any, gone bool) {
	p := o.(*corev1.Pod)
	seen := s.seenLocked(p.UID)
	seen.pod, seen.gone = p, gone
}

func (s *sighting) seeEvent(o any, gone bool) {
	e := o.(*corev1.Event)
	if e.Type == corev1.EventTypeWarning && !gone {
		seen := s.seenLocked(e.InvolvedObject.UID)
		seen.warning = warning{e.Reason, e.Message}
		if name := seen.warning.volume(); name != "" {
			seen.unmounted[name] = true
		}
	}
}

func (s *sighting) seeClaim(o any, gone bool) {
	c := o.(*resourcev1.ResourceClaim)
	if c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return
	}
	owner := metav1.GetControllerOf(c)
	if owner == nil {
		return
	}
	seen := s.seenLocked(owner.UID)
	claim := seen.claims[c.Name]
	claim.newest, claim.gone = c, gone
	if c.Status.Allocation != nil && !gone {
		claim.held = c
	}
	seen.claims[c.Name] = claim
}

func (s *sighting) seenLocked(uid types.UID) *seenPod {
	seen := s.pods[uid]
	if seen == nil {
		seen = &seenPod{claims: map[string]seenClaim{}, unmounted: map[string]bool{}}
		s.pods[uid] = seen
	}
	return seen
}

func (s *sighting) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// next is closed at the next change. Get it before the view that is judged, then no
// change is missed.
func (s *sighting) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// of is everything that was seen of a pod.
func (s *sighting) of(uid types.UID) view {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seenLocked(uid)
	return view{
		pod:       seen.pod,
		gone:      seen.gone,
		claims:    maps.Clone(seen.claims),
		warning:   seen.warning,
		unmounted: maps.Clone(seen.unmounted),
		trouble:   s.troubleLocked(),
	}
}

// lost notes that the server does not have the pod any more.
func (s *sighting) lost(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seenLocked(uid).gone = true
	s.notifyLocked()
}

// unsynced says why the watches have not begun; "" once they have.
func (s *sighting) unsynced() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.troubleLocked(); why != "" {
		return why, nil
	}
	for _, f := range s.feeds {
		if !f.optional && !f.informer.HasSynced() {
			return "the server to list " + f.what, nil
		}
	}
	return "", nil
}

// trouble says which watch does not work; "" if all of them do.
func (s *sighting) trouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.troubleLocked()
}

func (s *sighting) troubleLocked() string {
	for _, f := range s.feeds {
		if f.trouble != nil && !f.optional {
			return fmt.Sprintf("%s cannot be watched: %v", f.what, f.trouble)
		}
	}
	return ""
}
