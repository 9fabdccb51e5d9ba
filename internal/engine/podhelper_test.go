package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// A run has many probes of a node. What it does not have is tried, and told of, in the
// first of them alone; and each wait that is told of has its end ahead.
func TestProbesRememberWhatANodeLacks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // of a test that fails
	defer cancel()
	client := fake.NewClientset()
	var mu sync.Mutex
	var made []bool // whether each pod wanted the driver root
	client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		pod := a.(ktesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
		wants := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "driver-root" })
		mu.Lock()
		made = append(made, wants)
		pod.UID = types.UID(fmt.Sprint("pod-", len(made)))
		mu.Unlock()
		pod.Spec.NodeName = "gpu-7"
		pod.Status.Phase = corev1.PodPending
		if !wants {
			pod.Status.Phase = corev1.PodSucceeded
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		}
		if err := client.Tracker().Create(a.GetResource(), pod, pod.Namespace); err != nil {
			return true, nil, err
		}
		if wants {
			err := client.Tracker().Create(corev1.SchemeGroupVersion.WithResource("events"), &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: string(pod.UID)},
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
				Type:           corev1.EventTypeWarning, Reason: "FailedMount",
				Message: `MountVolume.SetUp failed for volume "driver-root" : hostPath type check failed: /run/nvidia/driver is not a directory`,
			}, pod.Namespace)
			if err != nil {
				t.Error(err)
			}
		}
		return true, pod, nil
	})

	var told []string
	now := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	e := &Engine{client: client, deps: Deps{Clock: now, Namespace: "dramigrate-system", Sink: func(ev event.Event) {
		switch ev := ev.(type) {
		case event.Warned:
			told = append(told, ev.Message)
		case event.Waiting:
			if !ev.Deadline.After(now.Now()) {
				t.Errorf("told of a wait until %s at %s", ev.Deadline, now.Now())
			}
		}
	}}}
	h := (&poolRun{session: &session{Engine: e, id: "4f1c22aa", plan: &plan.Plan{
		Settings: plan.Settings{HelperImage: "helper:v1", DriverRoot: "/run/nvidia/driver"},
	}}}).newHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-7"}}
	for range 3 {
		// What the pod prints here is no report, which is for others to test.
		if _, err := h.Probe(ctx, node, plan.StepOpen); err == nil || unstarted(err) || ctx.Err() != nil {
			t.Fatalf("error %v, want that of a pod that ran", err)
		}
		now.Step(time.Hour)
	}
	if want := []bool{true, false, false, false}; !slices.Equal(made, want) {
		t.Errorf("pods with the driver root: %v, want %v", made, want)
	}
	if len(told) != 1 {
		t.Errorf("told %q, want one warning", told)
	}
}
