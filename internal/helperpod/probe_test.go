package helperpod

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
)

func asError(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *Error", err)
	}
	return e
}

// goodLog has the error stream's lines among its own, as a pod's log does.
const goodLog = "W1103 15:05:06 something of a library {\n" +
	`{"apiVersion":"dramigrate.dev/v1alpha1","kind":"NodeReport","node":"gpu-7","time":"2026-11-03T15:05:06Z",` +
	`"kubeletSocket":"/var/lib/kubelet/pod-resources/kubelet.sock","advertised":{"nvidia.com/gpu":["GPU-a"]},` +
	`"holders":[{"pod":"a/b","container":"c","resource":"nvidia.com/gpu","ids":["GPU-a"]}],"listCalled":true}` + "\n"

func TestProbe(t *testing.T) {
	w := newWorld(t)
	w.log, w.node = goodLog, w.runs(0)
	report, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: w.wait(0)})
	if err != nil {
		t.Fatal(err)
	}
	if !report.ListCalled || len(report.Advertised["nvidia.com/gpu"]) != 1 || len(report.Holders) != 1 || report.Holders[0].Pod != "a/b" {
		t.Errorf("report = %+v", report)
	}
	w.wantRemoved("pod-1")
}

// A report with an unknown part is given, and is not a success.
func TestProbeIncomplete(t *testing.T) {
	w := newWorld(t)
	w.log = strings.Replace(goodLog, `"listCalled":true`, `"listCalled":false,"unknown":[{"part":"holders","reason":"List: permission denied"}]`, 1)
	w.node = w.runs(7)
	report, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: w.wait(0)})
	wantError(t, err, Incomplete, "holders: List: permission denied")
	if report == nil || len(report.Unknown) != 1 {
		t.Errorf("report = %+v, want the one with the unknown part", report)
	}
	w.wantRemoved("pod-1")
}

func TestProbeWithoutAnswer(t *testing.T) {
	tests := []struct {
		name, log string
		exit      int32
		says      string
	}{
		{"crash", "panic: out of paper\n", 2, "exit code 2"},
		{"text", "hello\n", 0, "the log holds none"},
		{"torn", goodLog[:len(goodLog)-20] + "\n", 0, "the report cannot be read"},
		{"another version", strings.Replace(goodLog, "v1alpha1", "v1beta7", 1), 0, "dramigrate.dev/v1beta7"},
		{"another node", strings.Replace(goodLog, `"node":"gpu-7"`, `"node":"gpu-8"`, 1), 0, "the report is of node gpu-8"},
		{"a report that its program did not stand by", goodLog, 1, "exit code 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.log, w.node = tt.log, w.runs(tt.exit)
			report, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: w.wait(0)})
			e := wantError(t, err, NoAnswer, tt.says)
			if report != nil || !strings.Contains(e.Log, strings.TrimSpace(tt.log)) {
				t.Errorf("report %v, log in the error %q; want none, and the pod's log", report, e.Log)
			}
			w.wantRemoved("pod-1")
		})
	}
}

// A pod that comes no further names what it is stuck at, and what to do.
func TestProbeDeadline(t *testing.T) {
	tests := []struct {
		name string
		node func(*world, *corev1.Pod)
		kind Kind
		says string
		next string
	}{{
		name: "no room",
		node: func(w *world, p *corev1.Pod) {
			w.update(p, func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
					Message: "0/3 nodes are available: 1 Too many pods",
				}}
			})
		},
		kind: NotScheduled, says: "1 Too many pods", next: "kubectl describe node gpu-7",
	}, {
		name: "a scheduler plugin that fails",
		node: func(w *world, p *corev1.Pod) { w.warn(p, "FailedScheduling", "running PreBind plugin X") },
		kind: NotScheduled, says: "FailedScheduling: running PreBind plugin X", next: "kubectl describe node gpu-7",
	}, {
		name: "no image",
		node: func(w *world, p *corev1.Pod) {
			w.update(p, bind)
			w.update(p, waiting("ImagePullBackOff", `Back-off pulling image "helper:v1": not found`))
		},
		kind: NoImage, says: "image helper:v1: ImagePullBackOff: Back-off", next: "--helper-image",
	}, {
		name: "a volume that does not come",
		node: func(w *world, p *corev1.Pod) {
			w.update(p, bind)
			w.update(p, waiting("ContainerCreating", ""))
			w.warn(p, "FailedMount", `failed to sync configmap cache`)
		},
		kind: NotMounted, says: "FailedMount: failed to sync", next: "get events --field-selector involvedObject.name=dramigrate-probe-gpu-7-4ffd5816b9",
	}, {
		name: "it hangs",
		node: func(w *world, p *corev1.Pod) { w.update(p, bind); w.update(p, begin) },
		kind: Failed, says: "running", next: "kubectl -n dramigrate-system get events",
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.log = "so far"
			w.node = func(p *corev1.Pod) { tt.node(w, p) }
			w.deadlineAt(tt.says, 90*time.Second)
			_, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: w.wait(90 * time.Second)})
			e := wantError(t, err, tt.kind, tt.says, "not within 1m30s")
			if !strings.Contains(e.Next, tt.next) {
				t.Errorf("next is %q, want %q", e.Next, tt.next)
			}
			if tt.name == "it hangs" && e.Log != "so far" {
				t.Errorf("log in the error is %q", e.Log)
			}
			w.wantRemoved("pod-1")
		})
	}
}

// The kubelet tells of each volume that it cannot mount by an event of its own.
func TestProbeNamesAllUnmounted(t *testing.T) {
	w := newWorld(t)
	w.node = func(p *corev1.Pod) {
		w.update(p, bind)
		w.update(p, waiting("ContainerCreating", ""))
		w.warn(p, "FailedMount", `MountVolume.SetUp failed for volume "driver-root" : permission denied`)
		w.warn(p, "FailedMount", `MountVolume.SetUp failed for volume "claim-state" : no such device dra_manager_state`)
	}
	w.deadlineAt("dra_manager_state", 90*time.Second)
	_, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: w.wait(90 * time.Second)})
	e := wantError(t, err, NotMounted, "no such device dra_manager_state; volumes that could not be mounted: claim-state, driver-root")
	if want := []string{"claim-state", "driver-root"}; !slices.Equal(e.Unmounted, want) {
		t.Errorf("unmounted %q, want %q", e.Unmounted, want)
	}
}

// What cannot get better ends the wait at once: the clock stands still here.
func TestProbeEndsAtOnce(t *testing.T) {
	tests := []struct {
		name string
		node func(*world, *corev1.Pod)
		kind Kind
		says string
	}{{
		name: "no such image can be",
		node: func(w *world, p *corev1.Pod) {
			w.update(p, bind)
			w.update(p, waiting("InvalidImageName", "could not parse"))
		},
		kind: NoImage, says: "InvalidImageName: could not parse",
	}, {
		name: "no folder on the node",
		node: func(w *world, p *corev1.Pod) {
			w.update(p, bind)
			w.update(p, waiting("ContainerCreating", ""))
			w.warn(p, "FailedMount", `MountVolume.SetUp failed for volume "driver-root" : hostPath type check failed: /run/nvidia/driver is not a directory`)
		},
		kind: NotMounted, says: `volume "driver-root" : hostPath type check failed`,
	}, {
		name: "refused by the kubelet",
		node: func(w *world, p *corev1.Pod) {
			w.update(p, bind)
			w.update(p, func(p *corev1.Pod) {
				p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "OutOfcpu", "Node didn't have enough resource: cpu"
			})
		},
		kind: Failed, says: "OutOfcpu: Node didn't have enough resource: cpu",
	}, {
		name: "deleted by somebody",
		node: func(w *world, p *corev1.Pod) {
			w.update(p, bind)
			if err := w.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), p.Namespace, p.Name); err != nil {
				w.Error(err)
			}
		},
		kind: Deleted, says: "deleted before it had ended",
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.node = func(p *corev1.Pod) { tt.node(w, p) }
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // of a test that fails
			defer cancel()
			_, err := w.runner.Probe(ctx, testNode, ProbeOptions{Wait: w.wait(0)})
			wantError(t, err, tt.kind, tt.says)
			if _, none := w.deletedUIDs(); !none {
				t.Error("a pod is left")
			}
		})
	}
}

func leftover(labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: testNamespace, Name: podName(ForProbe, testNode, "4f1c22aa"), UID: "old", Labels: labels,
	}}
}

func TestProbeReplacesALeftover(t *testing.T) {
	w := newWorld(t, leftover(map[string]string{"app.kubernetes.io/managed-by": "dramigrate", RunLabel: "0ld0ld0l"}))
	w.log, w.node = goodLog, w.runs(0)
	if _, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: w.wait(0)}); err != nil {
		t.Fatal(err)
	}
	w.wantRemoved("old", "pod-1")
}

func TestProbeLeavesAForeignPodAlone(t *testing.T) {
	w := newWorld(t, leftover(nil))
	_, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: w.wait(0)})
	wantError(t, err, Foreign, "not made by dramigrate")
	if uids, _ := w.deletedUIDs(); len(uids) != 0 {
		t.Errorf("deleted %v", uids)
	}
}

func TestProbeInterrupted(t *testing.T) {
	w := newWorld(t)
	w.node = func(p *corev1.Pod) { w.update(p, bind); w.update(p, begin) }
	ctx, cancel := context.WithCancelCause(t.Context())
	signal := errors.New("SIGINT")
	w.onReason = func(reason string) {
		if reason == "running" {
			cancel(signal)
		}
	}
	_, err := w.runner.Probe(ctx, testNode, ProbeOptions{Wait: w.wait(0)})
	wantError(t, err, Interrupted, "running")
	if !errors.Is(err, signal) {
		t.Errorf("%v does not wrap the context's cause", err)
	}
	w.wantRemoved("pod-1")
}

// The server made the pod and its answer got lost. The second try finds the name
// taken, by the own pod.
func TestProbeWhoseCreateWasNotAnswered(t *testing.T) {
	w := newWorld(t)
	w.log, w.node = goodLog, w.runs(0)
	lost := false
	w.client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, kruntime.Object, error) {
		if lost {
			return false, nil, nil
		}
		lost = true
		if _, _, err := w.create(a); err != nil {
			return true, nil, err
		}
		w.stepWhen(2, time.Second) // the deadline, and the pause before the next try
		return true, nil, apierrors.NewServerTimeout(a.GetResource().GroupResource(), "create", 0)
	})
	if _, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: w.wait(0)}); err != nil {
		t.Fatal(err)
	}
	w.wantRemoved("pod-1")
}

// As above, and then the run ends: nobody knows whether the pod was made, so it is
// looked for.
func TestProbeInterruptedInCreate(t *testing.T) {
	w := newWorld(t)
	w.node = func(*corev1.Pod) {}
	ctx, cancel := context.WithCancel(t.Context())
	w.client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, kruntime.Object, error) {
		if _, _, err := w.create(a); err != nil {
			return true, nil, err
		}
		cancel()
		return true, nil, context.Canceled
	})
	_, err := w.runner.Probe(ctx, testNode, ProbeOptions{Wait: w.wait(0)})
	wantError(t, err, Interrupted)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not wrap context.Canceled", err)
	}
	w.wantRemoved("pod-1")
}

func TestProbeRefused(t *testing.T) {
	tests := []struct{ message, next string }{
		{`violates PodSecurity "baseline:latest": hostPath volumes`, "kubectl label namespace dramigrate-system pod-security.kubernetes.io/enforce=privileged"},
		{"User \"eve\" cannot create resource", "kubectl auth can-i create pods -n dramigrate-system"},
	}
	for _, tt := range tests {
		w := newWorld(t)
		w.client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, kruntime.Object, error) {
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "x", errors.New(tt.message))
		})
		_, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: w.wait(0)})
		if e := wantError(t, err, Refused, tt.message); e.Next != tt.next || !apierrors.IsForbidden(err) {
			t.Errorf("next is %q, want %q; %v", e.Next, tt.next, err)
		}
		w.wantRemoved()
	}
}

// A pod that does not go away is no success, but its answer is not lost.
func TestProbeLeavesAPod(t *testing.T) {
	w := newWorld(t)
	w.log, w.node, w.keep = goodLog, w.runs(0), true
	w.deadlineAt("the pod to be removed", removal)
	report, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: w.wait(0)})
	e := wantError(t, err, Leftover, "the pod to be removed")
	if report == nil {
		t.Error("the report is lost")
	}
	if want := "kubectl -n dramigrate-system describe pod dramigrate-probe-gpu-7-4ffd5816b9"; e.Next != want {
		t.Errorf("next is %q, want %q", e.Next, want)
	}
}

func TestWatchesThatAreForbidden(t *testing.T) {
	w := newWorld(t)
	w.client.PrependReactor("list", "pods", func(a ktesting.Action) (bool, kruntime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no rights"))
	})
	w.deadlineAt("no rights", DefaultTimeout)
	_, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: w.wait(0)})
	wantError(t, err, Refused, "pods cannot be watched", "no rights", "not within 2m0s")
	if w.made != 0 {
		t.Error("a pod was made that nobody can see")
	}
}

func TestPull(t *testing.T) {
	w := newWorld(t)
	w.node = w.runs(0)
	if err := w.runner.Pull(t.Context(), testNode, "helper:v2", PullOptions{w.wait(0)}); err != nil {
		t.Error(err)
	}
	w.wantRemoved("pod-1")

	w = newWorld(t)
	w.log, w.node = "exec format error", w.runs(255)
	err := w.runner.Pull(t.Context(), testNode, "helper:v2", PullOptions{w.wait(0)})
	wantError(t, err, Failed, "image helper:v2 does not run", "exit code 255", "exec format error")
	w.wantRemoved("pod-1")
}
