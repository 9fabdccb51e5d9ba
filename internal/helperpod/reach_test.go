package helperpod

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func pathsOf(p corev1.Pod) []string {
	var out []string
	for _, v := range p.Spec.Volumes {
		out = append(out, v.HostPath.Path)
	}
	return out
}

// A pod gets what its looks need and nothing else. Whatever it mounts it cannot write
// to, and no mount makes what is not there.
func TestReachIsTheLeast(t *testing.T) {
	tests := []struct {
		name                         string
		reach                        Reach
		paths                        []string
		args                         []string
		privileged, hostPID, visible bool
		class                        *string
	}{
		{name: "the kubelet alone", args: []string{"--parts", "kubelet"},
			paths: []string{"/var/lib/kubelet/pod-resources"}},
		{name: "GPUs by the runtime", reach: Reach{GPUs: true, RuntimeClass: "nvidia"}, args: []string{"--parts", "kubelet,nvml"},
			paths: []string{"/var/lib/kubelet/pod-resources"}, visible: true, class: ptr.To("nvidia")},
		{name: "GPUs by the driver's folder", reach: Reach{GPUs: true, DriverRoot: "/run/nvidia/driver/"},
			args:  []string{"--parts", "kubelet,nvml", "--driver-root", "/run/nvidia/driver"},
			paths: []string{"/var/lib/kubelet/pod-resources", "/run/nvidia/driver"}, privileged: true},
		{name: "processes", reach: Reach{GPUs: true, Processes: true}, args: []string{"--parts", "kubelet,nvml", "--processes"},
			paths: []string{"/var/lib/kubelet/pod-resources"}, visible: true, hostPID: true},
		{name: "processes without GPUs are none", reach: Reach{Processes: true, RuntimeClass: "nvidia", DriverRoot: "/d"}, args: []string{"--parts", "kubelet"},
			paths: []string{"/var/lib/kubelet/pod-resources"}},
		{name: "records", reach: Reach{Checkpoints: true}, args: []string{"--parts", "kubelet,checkpoints"},
			paths: []string{"/var/lib/kubelet/pod-resources", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/pods", "/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins_registry"}},
		{name: "records elsewhere", reach: Reach{Checkpoints: true, ClaimState: true, CDI: true, KubeletRoot: "/var/lib/k0s/kubelet"},
			args: []string{"--parts", "kubelet,checkpoints,cdi", "--kubelet-root", "/var/lib/k0s/kubelet",
				"--socket", "/var/lib/k0s/kubelet/pod-resources/kubelet.sock", "--cdi-dir", "/var/run/cdi"},
			paths: []string{"/var/lib/k0s/kubelet/pod-resources", "/var/lib/kubelet/device-plugins", "/var/lib/k0s/kubelet/pods", "/var/lib/k0s/kubelet/plugins",
				"/var/lib/k0s/kubelet/plugins_registry", "/var/lib/k0s/kubelet/dra_manager_state", "/var/run/cdi"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pod := specRunner().probePod(ForReport, "gpu-7", tt.reach, Wait{})
			c := pod.Spec.Containers[0]
			if got := pathsOf(pod); !slices.Equal(got, tt.paths) {
				t.Errorf("mounts %q, want %q", got, tt.paths)
			}
			if got, want := c.Args, slices.Concat([]string{"node-probe", "--node", "gpu-7"}, tt.args[:2], []string{"-o", "json"}, tt.args[2:]); !slices.Equal(got, want) {
				t.Errorf("args %q, want %q", got, want)
			}
			for i, v := range pod.Spec.Volumes {
				if m := c.VolumeMounts[i]; !m.ReadOnly || m.Name != v.Name || m.MountPath != v.HostPath.Path && v.Name != "device-plugins" {
					t.Errorf("%s is mounted as %+v", v.HostPath.Path, m)
				}
				if kind := *v.HostPath.Type; kind != corev1.HostPathDirectory && kind != corev1.HostPathFile {
					t.Errorf("%s has type %q, which makes what is not there", v.HostPath.Path, kind)
				}
			}
			if got := ptr.Deref(c.SecurityContext.Privileged, false); got != tt.privileged {
				t.Errorf("privileged: %v", got)
			}
			if !tt.privileged && (*c.SecurityContext.AllowPrivilegeEscalation || len(c.SecurityContext.Capabilities.Drop) == 0) {
				t.Errorf("the security context is %+v", c.SecurityContext)
			}
			if !*c.SecurityContext.ReadOnlyRootFilesystem || pod.Spec.HostNetwork || pod.Spec.HostPID != tt.hostPID {
				t.Errorf("hostNetwork %v, hostPID %v, security %+v", pod.Spec.HostNetwork, pod.Spec.HostPID, c.SecurityContext)
			}
			if got := len(c.Env) > 0; got != tt.visible {
				t.Errorf("environment %v", c.Env)
			}
			if ptr.Deref(pod.Spec.RuntimeClassName, "-") != ptr.Deref(tt.class, "-") {
				t.Errorf("runtime class %v", pod.Spec.RuntimeClassName)
			}
			for name := range c.Resources.Limits {
				if name != corev1.ResourceMemory {
					t.Errorf("it asks for %s", name)
				}
			}
		})
	}
}

// A report's pod and that of a run do not meet, nor do those of two people.
func TestReportsDoNotMeet(t *testing.T) {
	names := []string{podName(ForProbe, testNode, "a"), podName(ForReport, testNode, "a"), podName(ForReport, testNode, "b")}
	if names[0] == names[1] || names[1] == names[2] {
		t.Errorf("names %q", names)
	}
}

// A run removes the reports' pods that nobody reads any more, and no other.
func TestSweepLeavesReportsInUse(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	pod := func(name string, age time.Duration) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "tool", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age)),
				Labels:      map[string]string{RunLabel: "other", PurposeLabel: string(ForReport)},
				Annotations: map[string]string{cluster.HelperNodeAnnotation: testNode},
			},
			Spec: corev1.PodSpec{ActiveDeadlineSeconds: ptr.To[int64](120)},
		}
	}
	// The pod has 2 minutes, and who made it has one more to remove it.
	client := fake.NewClientset(pod("in-use", 179*time.Second), pod("left", 181*time.Second))
	r := New(client, clocktesting.NewFakeClock(now), Config{Namespace: "tool", Run: "now", Image: "x"})
	if err := r.Sweep(t.Context(), testNode); err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Pods("tool").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "in-use" {
		t.Errorf("left are %d pods, want in-use alone", len(list.Items))
	}
}

// What a pod printed that gave no report is kept whole.
func TestProbeKeepsTheLog(t *testing.T) {
	w := newWorld(t)
	w.log, w.node = "panic: out of paper\n", w.runs(2)
	wait, kept := w.wait(0), ""
	wait.KeepLog = func(log string) { kept += log }
	_, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: wait, Beside: true})
	wantError(t, err, NoAnswer)
	if kept != w.log {
		t.Errorf("kept %q, want %q", kept, w.log)
	}
	w.wantRemoved("pod-1")

	w = newWorld(t)
	w.log, w.node = goodLog, w.runs(0)
	wait, kept = w.wait(0), ""
	wait.KeepLog = func(log string) { kept += log }
	if _, err := w.runner.Probe(t.Context(), testNode, ProbeOptions{Wait: wait}); err != nil || kept != "" {
		t.Errorf("%v; kept %q of a probe that went well", err, kept)
	}
}

// Each volume but the socket's goes with the look that needs it.
func TestWithoutWhatNeedsAVolume(t *testing.T) {
	has := func(o Reach, volume string) bool {
		return slices.ContainsFunc(o.mounts(), func(m mount) bool { return m.name == volume })
	}
	all := Reach{GPUs: true, DriverRoot: "/run/nvidia/driver", Checkpoints: true, ClaimState: true}
	for volume, want := range map[string]Look{
		"pod-resources": "", "device-plugins": LookRecords, "pods": LookRecords, "plugins": LookRecords,
		"plugins-registry": LookRecords, "claim-state": LookClaims, "driver-root": LookGPUs,
	} {
		look := Needs(volume)
		if look != want {
			t.Errorf("%s is needed by %q, want %q", volume, look, want)
		}
		if less := all.Without(look); !has(all, volume) || has(less, volume) != (look == "") || less.Has(look) {
			t.Errorf("%s without %q: %+v", volume, look, less)
		}
	}
	if n := len(all.mounts()); n != 7 {
		t.Errorf("%d volumes, want the 7 that are named here", n)
	}
}
