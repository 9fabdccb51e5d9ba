package simnode

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The times of the tests are offsets from here.
var start = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

const (
	pluginImage = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
	driverImage = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1"
)

func at(offset time.Duration) time.Time { return start.Add(offset) }

// kubelet are the real constants: 5 minutes of grace, 30 seconds to the wipe.
func kubelet() timings { return Config{}.timings() }

func pod(name, image string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{NodeName: "sim-0", Containers: []corev1.Container{{Name: "c", Image: image}}},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

func gpuPod(name string, phase corev1.PodPhase) *corev1.Pod {
	p := pod(name, "nvcr.io/nvidia/cuda:13.0.1-base", phase)
	one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: one, Requests: one}
	return p
}

func mapped(p *corev1.Pod) *corev1.Pod {
	p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: p.Name + "-extended-resources-x",
		RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "c", ResourceName: "nvidia.com/gpu", RequestName: "container-0-request-0"}},
	}
	return p
}

func deleted(p *corev1.Pod, graceSeconds int64) *corev1.Pod {
	gone := metav1.NewTime(start)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &gone, &graceSeconds
	return p
}

func assertNext(t *testing.T, d decision, want time.Time) {
	t.Helper()
	if !d.next.Equal(want) {
		t.Errorf("next decision at %v, want %v", d.next.Sub(start), want.Sub(start))
	}
}

func assertResource(t *testing.T, d decision, capacity, allocatable int64) {
	t.Helper()
	if d.resource == nil || *d.resource != (advertised{capacity, allocatable}) {
		t.Errorf("resource %v, want capacity %d and allocatable %d", d.resource, capacity, allocatable)
	}
}

// The times are those of the measured cluster and of the kubelet's source:
// allocatable 0 at the next status, capacity 0 after 5 minutes, key for ever.
func TestPluginComesAndGoes(t *testing.T) {
	m := newMachine(4, kubelet(), false, at(0))
	plugin := pod("plugin", pluginImage, corev1.PodRunning)

	if d := m.decide(at(0), nil); d.resource != nil {
		t.Errorf("a node that never ran the plugin has the key: %v", d.resource)
	}
	d := m.decide(at(10*time.Second), []*corev1.Pod{plugin})
	if d.resource != nil {
		t.Errorf("advertised before the status was written: %v", d.resource)
	}
	assertNext(t, d, at(11*time.Second))
	assertResource(t, m.decide(at(11*time.Second), []*corev1.Pod{plugin}), 4, 4)

	// The process ends when its pod is deleted, not when the pod is gone.
	plugin = deleted(plugin, 30)
	d = m.decide(at(20*time.Second), []*corev1.Pod{plugin})
	assertResource(t, d, 4, 4)
	assertNext(t, d, at(21*time.Second))
	d = m.decide(at(21*time.Second), nil)
	assertResource(t, d, 4, 0)
	assertNext(t, d, at(20*time.Second+5*time.Minute))
	assertResource(t, m.decide(at(5*time.Minute+19*time.Second), nil), 4, 0)
	d = m.decide(at(5*time.Minute+20*time.Second), nil)
	assertResource(t, d, 0, 0)
	if !d.next.IsZero() {
		t.Errorf("another change is to come at %v", d.next.Sub(start))
	}

	back := pod("plugin-2", pluginImage, corev1.PodRunning)
	m.decide(at(time.Hour), []*corev1.Pod{back})
	assertResource(t, m.decide(at(time.Hour+time.Second), []*corev1.Pod{back}), 4, 4)
}

func TestPluginBackWithinTheGrace(t *testing.T) {
	m := newMachine(4, kubelet(), false, at(0))
	plugin := pod("plugin", pluginImage, corev1.PodRunning)
	m.decide(at(0), []*corev1.Pod{plugin})
	m.decide(at(time.Second), []*corev1.Pod{plugin})
	m.decide(at(time.Minute), nil)
	assertResource(t, m.decide(at(time.Minute+time.Second), nil), 4, 0)
	again := []*corev1.Pod{pod("plugin-2", pluginImage, corev1.PodRunning)}
	assertResource(t, m.decide(at(2*time.Minute), again), 4, 0)
	assertResource(t, m.decide(at(2*time.Minute+time.Second), again), 4, 4)
	assertResource(t, m.decide(at(10*time.Minute), again), 4, 4)
}

func TestPluginOnANodeWithoutGPUs(t *testing.T) {
	m := newMachine(0, kubelet(), false, at(0))
	plugin := []*corev1.Pod{pod("plugin", pluginImage, corev1.PodRunning)}
	m.decide(at(0), plugin)
	if d := m.decide(at(time.Minute), plugin); d.resource != nil {
		t.Errorf("resource %v on a node without GPUs", d.resource)
	}
}

func TestRestartOfTheSimulationIsARestartOfTheKubelet(t *testing.T) {
	m := newMachine(4, kubelet(), true, at(0))
	assertResource(t, m.decide(at(0), nil), 0, 0)
	assertResource(t, m.decide(at(time.Minute), nil), 0, 0)
}

func TestDriverComesAndGoes(t *testing.T) {
	m := newMachine(4, kubelet(), false, at(0))
	driver := []*corev1.Pod{pod("driver", driverImage, corev1.PodRunning)}
	d := m.decide(at(10*time.Second), driver)
	if d.slices {
		t.Error("published at once")
	}
	assertNext(t, d, at(11*time.Second))
	if !m.decide(at(11*time.Second), driver).slices {
		t.Error("not published after a second")
	}

	d = m.decide(at(20*time.Second), nil)
	if !d.slices {
		t.Error("slices went with the driver, not 30 s later")
	}
	assertNext(t, d, at(50*time.Second))
	// Back within the 30 s: nothing is wiped.
	if !m.decide(at(49*time.Second), driver).slices || !m.decide(at(51*time.Second), driver).slices {
		t.Error("a driver that came back lost its slices")
	}
	m.decide(at(60*time.Second), nil)
	if !m.decide(at(89*time.Second), nil).slices {
		t.Error("wiped before the delay")
	}
	if m.decide(at(90*time.Second), nil).slices {
		t.Error("still published 30 s after the driver went")
	}
}

func TestPodStartsAndEnds(t *testing.T) {
	m := newMachine(0, kubelet(), false, at(0))
	p := pod("web", "example.com/web:1", corev1.PodPending)
	d := m.decide(at(0), []*corev1.Pod{p})
	if len(d.start) != 0 {
		t.Error("started at once")
	}
	assertNext(t, d, at(700*time.Millisecond))
	if d := m.decide(at(700*time.Millisecond), []*corev1.Pod{p}); len(d.start) != 1 {
		t.Errorf("start %v, want the pod", d.start)
	}
	p.Status.Phase = corev1.PodRunning
	if d := m.decide(at(time.Hour), []*corev1.Pod{p}); len(d.start)+len(d.succeed)+len(d.remove) != 0 {
		t.Errorf("a running pod was touched: %+v", d)
	}
	for _, tt := range []struct {
		grace int64
		after time.Duration
	}{{grace: 30, after: time.Second}, {grace: 0, after: 0}} {
		m := newMachine(0, kubelet(), false, at(0))
		m.decide(at(0), []*corev1.Pod{p})
		gone := deleted(p.DeepCopy(), tt.grace)
		d := m.decide(at(time.Minute), []*corev1.Pod{gone})
		if tt.after > 0 {
			if len(d.remove) != 0 {
				t.Errorf("grace %d s: removed at once", tt.grace)
			}
			assertNext(t, d, at(time.Minute+tt.after))
			d = m.decide(at(time.Minute+tt.after), []*corev1.Pod{gone})
		}
		if len(d.remove) != 1 {
			t.Errorf("grace %d s: not removed after %v", tt.grace, tt.after)
		}
	}
}

func TestPodOfAJobSucceeds(t *testing.T) {
	m := newMachine(0, kubelet(), false, at(0))
	isController := true
	p := pod("job-x", "example.com/job:1", corev1.PodRunning)
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "job", Controller: &isController}}
	assertNext(t, m.decide(at(10*time.Second), []*corev1.Pod{p}), at(12*time.Second))
	if d := m.decide(at(12*time.Second), []*corev1.Pod{p}); len(d.succeed) != 1 {
		t.Errorf("succeed %v, want the pod", d.succeed)
	}
	p.Status.Phase = corev1.PodSucceeded
	if d := m.decide(at(time.Minute), []*corev1.Pod{p}); len(d.start)+len(d.succeed)+len(d.remove) != 0 {
		t.Errorf("a finished pod was touched: %+v", d)
	}
}

// The device plugin counts: a pod beyond what it has is refused, as is any pod
// that arrives after the plugin left. One that DRA serves is not counted.
func TestAdmissionOfPluginPods(t *testing.T) {
	m := newMachine(1, kubelet(), false, at(0))
	plugin := pod("plugin", pluginImage, corev1.PodRunning)
	m.decide(at(0), []*corev1.Pod{plugin})
	driver := pod("driver", driverImage, corev1.PodRunning)
	served := mapped(gpuPod("served", corev1.PodRunning))
	pods := []*corev1.Pod{plugin, driver, served, gpuPod("one", corev1.PodPending), gpuPod("two", corev1.PodPending)}
	m.decide(at(10*time.Second), pods)
	d := m.decide(at(11*time.Second), pods)
	if len(d.start) != 1 || d.start[0].Name != "one" || len(d.reject) != 1 || d.reject[0].Name != "two" {
		t.Errorf("start %v, reject %v; want one of the two", d.start, d.reject)
	}

	late := []*corev1.Pod{gpuPod("late", corev1.PodPending)}
	m.decide(at(time.Minute), late)
	if d := m.decide(at(time.Minute+time.Second), late); len(d.reject) != 1 {
		t.Errorf("a pod was admitted though the plugin is gone: %+v", d)
	}
}

func TestDRAPodsNeedTheDriver(t *testing.T) {
	m := newMachine(1, kubelet(), false, at(0))
	p := mapped(gpuPod("legacy", corev1.PodPending))
	explicit := pod("explicit", "example.com/x:1", corev1.PodPending)
	explicit.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
	pods := []*corev1.Pod{p, explicit}
	m.decide(at(0), pods)
	if d := m.decide(at(time.Minute), pods); len(d.start) != 0 {
		t.Errorf("started without a driver: %v", d.start)
	}
	driver := pod("driver", driverImage, corev1.PodRunning)
	if d := m.decide(at(2*time.Minute), append(pods, driver)); len(d.start) != 2 {
		t.Errorf("start %v, want both pods now that the driver is there", d.start)
	}

	p.Status.Phase = corev1.PodRunning
	explicit.Status.Phase = corev1.PodRunning
	deleted(p, 30)
	m.decide(at(3*time.Minute), pods)
	if d := m.decide(at(time.Hour), pods); len(d.remove) != 0 {
		t.Error("a pod with prepared devices ended without the driver")
	}
	if d := m.decide(at(2*time.Hour), append(pods, driver)); len(d.remove) != 1 || d.remove[0].Name != "legacy" {
		t.Errorf("remove %v, want the deleted pod now that the driver is back", d.remove)
	}
}

func TestImages(t *testing.T) {
	for image, want := range map[string]bool{
		"nvcr.io/nvidia/k8s-device-plugin":                       true,
		"nvcr.io/nvidia/k8s-device-plugin:v0.20.0":               true,
		"nvcr.io/nvidia/k8s-device-plugin@sha256:00":             true,
		"nvcr.io/nvidia/k8s-device-plugin-extra:1":               false,
		"mirror.example.com/nvcr.io/nvidia/k8s-device-plugin:v1": false,
	} {
		if got := hasImage(pod("p", image, corev1.PodRunning), "nvcr.io/nvidia/k8s-device-plugin"); got != want {
			t.Errorf("%s is the plugin's: %v, want %v", image, got, want)
		}
	}
}
