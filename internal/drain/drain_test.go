package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedpolicyv1 "k8s.io/client-go/kubernetes/typed/policy/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
)

// server is a fake API server whose eviction API a test writes itself. It counts
// the requests, and it is all of one node.
type server struct {
	kubernetes.Interface
	fake  *fake.Clientset
	evict func(ctx context.Context, s *server, pod string) error

	mu      sync.Mutex
	asked   map[string][]time.Duration // since the beginning, for each pod
	begin   time.Time
	uids    []types.UID
	running int
	most    int // requests that were under way at once
}

func newServer(evict func(ctx context.Context, s *server, pod string) error, objects ...runtime.Object) *server {
	f := fake.NewClientset(objects...)
	return &server{Interface: f, fake: f, evict: evict, asked: map[string][]time.Duration{}, begin: time.Now()}
}

// IsWatchListSemanticsUnSupported passes on what the wrapped fake says of itself.
func (s *server) IsWatchListSemanticsUnSupported() bool { return true }

func (s *server) PolicyV1() typedpolicyv1.PolicyV1Interface {
	return policy{PolicyV1Interface: s.Interface.PolicyV1(), server: s}
}

type policy struct {
	typedpolicyv1.PolicyV1Interface
	server *server
}

func (p policy) Evictions(namespace string) typedpolicyv1.EvictionInterface {
	return evictions{EvictionInterface: p.PolicyV1Interface.Evictions(namespace), server: p.server}
}

type evictions struct {
	typedpolicyv1.EvictionInterface
	server *server
}

func (e evictions) Evict(ctx context.Context, ev *policyv1.Eviction) error {
	s := e.server
	s.mu.Lock()
	s.asked[ev.Name] = append(s.asked[ev.Name], time.Since(s.begin))
	if o := ev.DeleteOptions; o == nil || o.Preconditions == nil || o.Preconditions.UID == nil || o.GracePeriodSeconds != nil {
		s.mu.Unlock()
		return fmt.Errorf("eviction without UID, or with a grace: %+v", ev)
	}
	s.uids = append(s.uids, *ev.DeleteOptions.Preconditions.UID)
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	return s.evict(ctx, s, ev.Name)
}

func (s *server) remove(name string) {
	if err := s.fake.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "ns", name); err != nil {
		panic(err)
	}
}

// ends accepts an eviction; the pod is gone a second later.
func ends(_ context.Context, s *server, pod string) error {
	go func() {
		time.Sleep(time.Second)
		s.remove(pod)
	}()
	return nil
}

func aPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"app": name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: new(true)}}},
		Spec:   corev1.PodSpec{NodeName: "gpu-7"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func bare(p *corev1.Pod)    { p.OwnerReferences = nil }
func pending(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }
func ending(p *corev1.Pod) {
	p.DeletionTimestamp = new(metav1.NewTime(time.Now().Add(20 * time.Second)))
	p.Finalizers = []string{"example.org/hold"}
}
func emptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}
func static(p *corev1.Pod) {
	bare(p)
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
}
func ofDaemonSet(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "ds", Controller: new(true)}}
}

func budgetFor(name, app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
}

// overBudget is the eviction API's answer to a pod whose budget is used up.
func overBudget() error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget keep needs 3 healthy pods and has 3 currently"}}
	return err
}

// not wants every pod but those named.
func not(names ...string) func(*corev1.Pod) (bool, string) {
	return func(p *corev1.Pod) (bool, string) { return !slices.Contains(names, p.Name), "requests nvidia.com/gpu" }
}

func options(s *server) Options {
	return Options{Client: s, Clock: clock.RealClock{}, Timeout: 5 * time.Minute}
}

// events collects what a drain reports.
type events []Event

func (e *events) add(ev Event) { *e = append(*e, ev) }

func (e events) evicted() []string {
	var out []string
	for _, ev := range e {
		if ev, ok := ev.(Evicted); ok {
			out = append(out, ev.Pod)
		}
	}
	slices.Sort(out)
	return out
}

func TestDrainEvictsWhatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(ends, aPod("a"), aPod("b"), aPod("keep", emptyDir, bare))
		var told events
		if err := New(options(s)).Drain(t.Context(), "gpu-7", not("keep"), told.add); err != nil {
			t.Fatal(err)
		}
		if got := told.evicted(); !slices.Equal(got, []string{"ns/a", "ns/b"}) {
			t.Errorf("evicted %v", got)
		}
		slices.Sort(s.uids)
		if !slices.Equal(s.uids, []types.UID{"uid-of-a", "uid-of-b"}) {
			t.Errorf("evictions for %v", s.uids)
		}
		for _, e := range told {
			if e, ok := e.(Evicting); ok && e.Why != "requests nvidia.com/gpu" {
				t.Errorf("%+v", e)
			}
		}
		for _, a := range s.fake.Actions() {
			if v := a.GetVerb(); v != "list" && v != "watch" && v != "get" {
				t.Errorf("the drain itself does %s %s", v, a.GetResource().Resource)
			}
		}
	})
}

func TestDrainNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(ends, aPod("keep"))
		begin := time.Now()
		if err := New(options(s)).Drain(t.Context(), "gpu-7", not("keep"), nil); err != nil || len(s.asked) != 0 || time.Since(begin) > time.Second {
			t.Errorf("%v, asked %v", err, s.asked)
		}
	})
}

func TestDrainWaitsForTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(func(ctx context.Context, s *server, pod string) error {
			if time.Since(s.begin) < time.Minute {
				return overBudget()
			}
			return ends(ctx, s, pod)
		}, aPod("a"), budgetFor("keep", "a"), budgetFor("unrelated", "b"))
		var told events
		if err := New(options(s)).Drain(t.Context(), "gpu-7", not(), told.add); err != nil {
			t.Fatal(err)
		}
		tries := s.asked["a"]
		// Pauses double from 1 s to 10 s, each a quarter more or less.
		for i, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
			pause := tries[i+1] - tries[i]
			if lo, hi := want*time.Second*3/4, want*time.Second*5/4; pause < lo || pause > hi {
				t.Errorf("pause %d is %s, want %ds ± 1/4", i, pause, want)
			}
		}
		var blocked int
		for _, e := range told {
			b, ok := e.(Blocked)
			if !ok {
				continue
			}
			blocked++
			if b.Pod != "ns/a" || !slices.Equal(b.Budgets, []string{"ns/keep"}) || !strings.Contains(b.Reason, "needs 3 healthy pods") {
				t.Errorf("%+v", b)
			}
		}
		if blocked != len(tries)-1 {
			t.Errorf("%d of %d refusals are told", blocked, len(tries)-1)
		}
	})
}

func TestDrainDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(func(ctx context.Context, s *server, pod string) error {
			switch pod {
			case "free":
				return ends(ctx, s, pod)
			case "stuck": // accepted, and the kubelet never ends it
				p := aPod("stuck", ending)
				return s.fake.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), p, "ns")
			}
			return overBudget()
		}, aPod("free"), aPod("stuck"), aPod("held"), budgetFor("keep", "held"))
		var told events
		begin := time.Now()
		err := New(options(s)).Drain(t.Context(), "gpu-7", not(), told.add)
		var late *TimeoutError
		if !errors.As(err, &late) || time.Since(begin) != 5*time.Minute || late.Node != "gpu-7" || len(late.Remaining) != 2 {
			t.Fatalf("after %s: %v", time.Since(begin), err)
		}
		held, stuck := late.Remaining[0], late.Remaining[1]
		if held.Pod != "ns/held" || !slices.Equal(held.Budgets, []string{"ns/keep"}) || !strings.Contains(held.Reason, "needs 3 healthy pods") {
			t.Errorf("%+v", held)
		}
		if want := "terminating, its grace ended 4m40s ago, held by the finalizers example.org/hold"; stuck.Pod != "ns/stuck" || stuck.Reason != want {
			t.Errorf("%+v, want %q", stuck, want)
		}
		if got := told.evicted(); !slices.Equal(got, []string{"ns/free"}) {
			t.Errorf("evicted %v", got)
		}
		if n := len(s.asked["stuck"]); n != 1 {
			t.Errorf("a terminating pod was evicted %d times", n)
		}
		var beats int
		for _, e := range told {
			if w, ok := e.(Waiting); ok {
				beats++
				if w.Deadline != begin.Add(5*time.Minute) || w.Since != begin {
					t.Errorf("%+v", w)
				}
			}
		}
		if beats < 19 || beats > 20 { // each 15 s for 300 s; the last falls on the deadline
			t.Errorf("%d heartbeats", beats)
		}
		asked := len(s.asked["held"])
		time.Sleep(time.Hour)
		if len(s.asked["held"]) != asked {
			t.Error("evictions go on after the drain has returned")
		}
	})
}

func TestDrainRefusesBeforeItBegins(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		budgets []string
		allow   func(*Options)
		want    string // in the error; empty: it is evicted
	}{
		"several budgets":           {pod: aPod("x"), budgets: []string{"one", "two"}, want: "ns/x: several budgets cover it"},
		"several, but pending":      {pod: aPod("x", pending), budgets: []string{"one", "two"}},
		"one budget":                {pod: aPod("x"), budgets: []string{"one"}},
		"emptyDir":                  {pod: aPod("x", emptyDir), want: "local storage"},
		"emptyDir, allowed":         {pod: aPod("x", emptyDir), allow: func(o *Options) { o.DeleteEmptyDirData = true }},
		"nobody's":                  {pod: aPod("x", bare), want: "declare no controller"},
		"nobody's, allowed":         {pod: aPod("x", bare), allow: func(o *Options) { o.EvictUnmanaged = true }},
		"a set that does not exist": {pod: aPod("x", ofDaemonSet), want: "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				objects := []runtime.Object{aPod("a"), tc.pod}
				for _, b := range tc.budgets {
					objects = append(objects, budgetFor(b, "x"))
				}
				s := newServer(ends, objects...)
				o := options(s)
				if tc.allow != nil {
					tc.allow(&o)
				}
				err := New(o).Drain(t.Context(), "gpu-7", not(), nil)
				if tc.want == "" {
					if err != nil || len(s.asked) != 2 {
						t.Errorf("%v, asked %v", err, s.asked)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "node/gpu-7: drain: ") || len(s.asked) != 0 {
					t.Errorf("%v, asked %v", err, s.asked)
				}
				var refused *RefusedError
				if errors.As(err, &refused) && !slices.Equal(refused.Pods[0].Budgets, []string{"ns/one", "ns/two"}) {
					t.Errorf("%+v", refused)
				}
			})
		})
	}
}

func TestDrainLeavesDaemonSetAndStaticPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(ends, aPod("a"), aPod("d", ofDaemonSet), aPod("m", static),
			&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ds"}})
		var told events
		if err := New(options(s)).Drain(t.Context(), "gpu-7", not(), told.add); err != nil {
			t.Fatal(err)
		}
		if len(s.asked) != 1 || len(s.asked["a"]) != 1 {
			t.Errorf("asked %v", s.asked)
		}
		if !slices.ContainsFunc(told, func(e Event) bool {
			n, ok := e.(Noted)
			return ok && strings.Contains(n.Message, "DaemonSet-managed Pods: ns/d")
		}) {
			t.Errorf("the DaemonSet pod that stays is not told: %+v", told)
		}
	})
}

func TestDrainWaitsForTerminatingPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(ends, aPod("a", ending))
		go func() {
			time.Sleep(7 * time.Second)
			s.remove("a")
		}()
		begin := time.Now()
		if err := New(options(s)).Drain(t.Context(), "gpu-7", not(), nil); err != nil || len(s.asked) != 0 || time.Since(begin) != 7*time.Second {
			t.Errorf("%v after %s, asked %v", err, time.Since(begin), s.asked)
		}
	})
}

// A StatefulSet gives its pods the same names: the successor is another pod.
func TestDrainKnowsASuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		successor := aPod("a", pending, func(p *corev1.Pod) { p.UID = "successor"; p.Labels = map[string]string{"new": "yes"} })
		s := newServer(func(_ context.Context, s *server, _ string) error {
			s.remove("a")
			return s.fake.Tracker().Add(successor)
		}, aPod("a"))
		err := New(options(s)).Drain(t.Context(), "gpu-7", func(p *corev1.Pod) (bool, string) { return p.Labels["new"] == "", "old" }, nil)
		if err != nil || !slices.Equal(s.uids, []types.UID{"uid-of-a"}) {
			t.Errorf("%v, evictions for %v", err, s.uids)
		}
	})
}

func TestDrainTakesLateArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(func(ctx context.Context, s *server, pod string) error {
			if pod == "a" {
				if err := s.fake.Tracker().Add(aPod("late")); err != nil {
					return err
				}
			}
			return ends(ctx, s, pod)
		}, aPod("a"))
		var told events
		err := New(options(s)).Drain(t.Context(), "gpu-7", not(), told.add)
		if got := told.evicted(); err != nil || !slices.Equal(got, []string{"ns/a", "ns/late"}) {
			t.Errorf("%v, evicted %v", err, got)
		}
	})
}

// A list out of a cache may be older than the last pod that was bound: nothing is
// done until a list that no cache answers says so.
func TestDrainDoesNotTrustAnOldList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := watch.NewRaceFreeFake()
		s := newServer(func(_ context.Context, s *server, pod string) error {
			s.remove(pod)
			stream.Delete(aPod(pod))
			return nil
		}, aPod("a"))
		s.fake.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			cached := a.(clienttesting.ListActionImpl).ListOptions.ResourceVersion == "0"
			return cached, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		})
		s.fake.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
			go func() {
				time.Sleep(5 * time.Second)
				stream.Add(aPod("a"))
			}()
			return true, stream, nil
		})
		begin := time.Now()
		err := New(options(s)).Drain(t.Context(), "gpu-7", not(), nil)
		if err != nil || len(s.asked["a"]) != 1 || time.Since(begin) != 5*time.Second {
			t.Errorf("%v after %s, asked %v", err, time.Since(begin), s.asked)
		}
	})
}

var podsResource = schema.GroupResource{Resource: "pods"}

// Each answer comes for 30 s, then the pod's eviction is accepted.
func TestDrainRetries(t *testing.T) {
	terminatingNamespace := apierrors.NewForbidden(podsResource, "a", errors.New("unable to create new content in namespace ns because it is being terminated"))
	terminatingNamespace.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	broken := apierrors.NewForbidden(schema.GroupResource{Resource: "poddisruptionbudget"}, "keep", errors.New("pdb disruptions allowed is negative"))
	broken.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "allowed is negative"}}
	for name, tc := range map[string]struct {
		err    error
		reason string
		most   int // requests within the 30 s
	}{
		"throttled":             {apierrors.NewTooManyRequests("slow down", 20), "the API server is busy", 3},
		"namespace terminating": {terminatingNamespace, "its namespace is terminating", 8},
		"budget is broken":      {broken, "allowed is negative", 8},
		"server error":          {apierrors.NewInternalError(errors.New("etcd is away")), "etcd is away", 8},
		"no connection":         {errors.New("dial tcp 10.0.0.1:443: connect: connection refused"), "connection refused", 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(func(ctx context.Context, s *server, pod string) error {
					if time.Since(s.begin) < 30*time.Second {
						return tc.err
					}
					return ends(ctx, s, pod)
				}, aPod("a"))
				var told events
				if err := New(options(s)).Drain(t.Context(), "gpu-7", not(), told.add); err != nil {
					t.Fatal(err)
				}
				b, ok := told[1].(Blocked)
				if !ok || !strings.Contains(b.Reason, tc.reason) || len(s.asked["a"]) > tc.most {
					t.Errorf("%+v, %d requests", told[1], len(s.asked["a"]))
				}
			})
		})
	}
}

// An answer that no retry will change ends the drain before others are disturbed.
func TestDrainStops(t *testing.T) {
	several := apierrors.NewInternalError(errors.New("x"))
	several.ErrStatus.Message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
	for name, answer := range map[string]error{
		"forbidden":       apierrors.NewForbidden(podsResource, "a", errors.New("no")),
		"several budgets": several,
		"lock lost":       fmt.Errorf("post: %w", permanentError{}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(func(_ context.Context, _ *server, pod string) error {
					if pod == "a" {
						return answer
					}
					return overBudget()
				}, aPod("a"), aPod("b"))
				begin := time.Now()
				err := New(options(s)).Drain(t.Context(), "gpu-7", not(), nil)
				var refused *RefusedError
				if !errors.As(err, &refused) || len(refused.Pods) != 1 || refused.Pods[0].Pod != "ns/a" || !errors.Is(err, answer) {
					t.Fatalf("got %v", err)
				}
				if time.Since(begin) > time.Second || len(s.asked["a"]) != 1 || len(s.asked["b"]) > 1 {
					t.Errorf("after %s, asked %v", time.Since(begin), s.asked)
				}
			})
		})
	}
}

type permanentError struct{}

func (permanentError) Error() string   { return "lock lost" }
func (permanentError) Permanent() bool { return true }

func TestDrainAnswersOfAPodThatIsGone(t *testing.T) {
	for name, answer := range map[string]error{
		"not found": apierrors.NewNotFound(podsResource, "a"),
		"conflict":  apierrors.NewConflict(podsResource, "a", errors.New("the UID in the precondition does not match")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(func(_ context.Context, s *server, pod string) error {
					if len(s.asked[pod]) == 1 { // the watch is a little behind
						go func() {
							time.Sleep(300 * time.Millisecond)
							s.remove(pod)
						}()
					}
					return answer
				}, aPod("a"))
				begin := time.Now()
				err := New(options(s)).Drain(t.Context(), "gpu-7", not(), nil)
				if err != nil || len(s.asked["a"]) != 1 || time.Since(begin) != 300*time.Millisecond {
					t.Errorf("%v after %s, asked %v", err, time.Since(begin), s.asked)
				}
			})
		})
	}
}

// An eviction that was accepted and did nothing is asked for again.
func TestDrainAcceptedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(func(ctx context.Context, s *server, pod string) error {
			if len(s.asked[pod]) < 3 {
				return nil
			}
			return ends(ctx, s, pod)
		}, aPod("a"))
		if err := New(options(s)).Drain(t.Context(), "gpu-7", not(), nil); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{0, 10 * time.Second, 20 * time.Second}; !slices.Equal(s.asked["a"], want) {
			t.Errorf("asked at %v", s.asked["a"])
		}
	})
}

func TestDrainBoundsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []runtime.Object
		for i := range 40 {
			objects = append(objects, aPod(fmt.Sprint("p", i)))
		}
		s := newServer(func(ctx context.Context, s *server, pod string) error {
			time.Sleep(time.Second)
			return ends(ctx, s, pod)
		}, objects...)
		o := options(s)
		o.MaxConcurrent = 4
		if err := New(o).Drain(t.Context(), "gpu-7", not(), nil); err != nil {
			t.Fatal(err)
		}
		if s.most != 4 || len(s.asked) != 40 {
			t.Errorf("%d at once, %d pods", s.most, len(s.asked))
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("lock lost")
		s := newServer(func(context.Context, *server, string) error { return overBudget() }, aPod("a"))
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(20 * time.Second)
			cancel(lost)
		}()
		err := New(options(s)).Drain(ctx, "gpu-7", not(), nil)
		asked := len(s.asked["a"])
		if !errors.Is(err, lost) || !strings.HasPrefix(err.Error(), "node/gpu-7: drain") {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Hour)
		if len(s.asked["a"]) != asked {
			t.Error("evictions go on")
		}
	})
}

func TestDrainMayNotSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(ends, aPod("a"))
		s.fake.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(podsResource, "", errors.New("no"))
		})
		if err := New(options(s)).Drain(t.Context(), "gpu-7", not(), nil); !apierrors.IsForbidden(err) || len(s.asked) != 0 {
			t.Errorf("got %v", err)
		}
	})
}
