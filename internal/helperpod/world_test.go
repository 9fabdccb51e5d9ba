package helperpod

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	testNamespace = "dramigrate-system"
	testNode      = "gpu-7"
)

// world is an API server with one node, on which a test plays scheduler and
// kubelet. Its time stands still unless the test steps it.
type world struct {
	*testing.T
	client *fake.Clientset
	clock  *clocktesting.FakeClock
	runner *Runner

	// node plays what becomes of a created pod, in its own goroutine.
	node func(*corev1.Pod)
	// log is what a pod prints.
	log string
	// onReason is called in turn with each reason that a wait reports.
	onReason func(reason string)
	// keep makes a deleted pod stay, as one whose kubelet is away.
	keep bool

	mu      sync.Mutex
	made    int
	warned  int
	deleted []types.UID // by precondition
	reasons []string
	players sync.WaitGroup
}

func newWorld(t *testing.T, objects ...kruntime.Object) *world {
	w := &world{T: t, client: fake.NewClientset(objects...), clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))}
	w.runner = New(w.client, w.clock, Config{Namespace: testNamespace, Run: "4f1c22aa", Image: "helper:v1"})
	w.client.PrependReactor("create", "pods", w.create)
	w.client.PrependReactor("delete", "pods", w.delete)
	w.client.PrependReactor("get", "pods", func(a ktesting.Action) (bool, kruntime.Object, error) {
		if a.GetSubresource() != "log" {
			return false, nil, nil
		}
		return true, &kruntime.Unknown{Raw: []byte(w.log)}, nil
	})
	t.Cleanup(w.players.Wait)
	return w
}

// wait is what a test gives to a call.
func (w *world) wait(timeout time.Duration) Wait {
	return Wait{Timeout: timeout, Report: func(reason string) {
		w.mu.Lock()
		w.reasons = append(w.reasons, reason)
		w.mu.Unlock()
		if w.onReason != nil {
			w.onReason(reason)
		}
	}}
}

// deadlineAt lets the whole of a call's time pass once a reason is reported that
// contains text. The watches are not in step: a kubelet's event may be seen before the
// pod's binding, and what is reported then is not what a test is about.
func (w *world) deadlineAt(text string, timeout time.Duration) {
	w.onReason = func(reason string) {
		early := strings.HasPrefix(reason, "not scheduled: FailedMount") || strings.HasPrefix(reason, "not scheduled: FailedPrepare")
		if strings.Contains(reason, text) && !early {
			w.clock.Step(timeout)
		}
	}
}

// stepWhen steps the clock as soon as n timers run.
func (w *world) stepWhen(n int, d time.Duration) {
	w.players.Go(func() {
		for w.clock.Waiters() < n {
			runtime.Gosched()
		}
		w.clock.Step(d)
	})
}

func (w *world) create(a ktesting.Action) (bool, kruntime.Object, error) {
	pod := a.(ktesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
	w.mu.Lock()
	defer w.mu.Unlock()
	pod.UID = types.UID(fmt.Sprintf("pod-%d", w.made+1))
	if err := w.client.Tracker().Create(a.GetResource(), pod, a.GetNamespace()); err != nil {
		return true, nil, err
	}
	w.made++
	w.players.Go(func() { w.node(pod.DeepCopy()) })
	return true, pod, nil
}

func (w *world) delete(a ktesting.Action) (bool, kruntime.Object, error) {
	d := a.(ktesting.DeleteActionImpl)
	there, err := w.client.Tracker().Get(a.GetResource(), a.GetNamespace(), d.Name)
	if err != nil {
		return true, nil, err
	}
	pre := d.DeleteOptions.Preconditions
	if pre == nil || pre.UID == nil || d.DeleteOptions.GracePeriodSeconds != nil {
		w.Errorf("delete of pod %s with %+v; want a UID precondition and the pod's own grace period", d.Name, d.DeleteOptions)
		return true, nil, apierrors.NewBadRequest("refused by the test")
	}
	if *pre.UID != there.(*corev1.Pod).UID {
		return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), d.Name, fmt.Errorf("precondition failed"))
	}
	w.mu.Lock()
	w.deleted = append(w.deleted, *pre.UID)
	w.mu.Unlock()
	return w.keep, nil, nil // false: the tracker deletes
}

// update stores the pod with what the test changed in it.
func (w *world) update(pod *corev1.Pod, change func(*corev1.Pod)) {
	change(pod)
	if err := w.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod.DeepCopy(), pod.Namespace); err != nil {
		w.Errorf("update of pod %s: %v", pod.Name, err)
	}
}

// warn records a warning event about the pod.
func (w *world) warn(pod *corev1.Pod, reason, message string) {
	w.mu.Lock()
	w.warned++
	name := fmt.Sprintf("%s.%d", pod.Name, w.warned)
	w.mu.Unlock()
	_, err := w.client.CoreV1().Events(pod.Namespace).Create(context.Background(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message,
	}, metav1.CreateOptions{})
	if err != nil {
		w.Errorf("event: %v", err)
	}
}

// deletedUIDs are the UIDs of the pods that were deleted, and whether none is left.
func (w *world) deletedUIDs() ([]types.UID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pods, err := w.client.CoreV1().Pods(testNamespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return w.deleted, len(pods.Items) == 0
}

// wantRemoved checks that exactly these pods were deleted and nothing is left.
func (w *world) wantRemoved(uids ...types.UID) {
	w.Helper()
	got, none := w.deletedUIDs()
	if fmt.Sprint(got) != fmt.Sprint(uids) || !none {
		w.Errorf("deleted %v (all gone: %v), want %v", got, none, uids)
	}
}

func bind(p *corev1.Pod)  { p.Spec.NodeName = testNode }
func begin(p *corev1.Pod) { state(p, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}) }

func state(p *corev1.Pod, s corev1.ContainerState) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, Image: p.Spec.Containers[0].Image, State: s}}
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		state(p, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
	}
}

func end(code int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		state(p, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}})
		p.Status.Phase = corev1.PodSucceeded
		if code != 0 {
			p.Status.Phase = corev1.PodFailed
		}
	}
}

// runs plays a node on which the pod runs and ends.
func (w *world) runs(code int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		w.update(p, bind)
		w.update(p, begin)
		w.update(p, end(code))
	}
}

// wantError checks the kind of an error, that it says what it must, and which object
// it is about.
func wantError(t *testing.T, err error, kind Kind, says ...string) *Error {
	t.Helper()
	if KindOf(err) != kind {
		t.Fatalf("error %v is %q, want %s", err, KindOf(err), kind)
	}
	for _, text := range append(says, "node/"+testNode) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
	return asError(t, err)
}
