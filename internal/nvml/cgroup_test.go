package nvml

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	uid      = "7c3bd1a5-0c5e-4a36-8a2b-6f0a3a1f5d11"
	uidSlice = "7c3bd1a5_0c5e_4a36_8a2b_6f0a3a1f5d11"
	digest   = "d0ea1b8c7c0c4c6ea3a2f2c1a1b2c3d4"
	otherUID = "99999999-0c5e-4a36-8a2b-6f0a3a1f5d11"
)

var (
	ctr      = strings.Repeat("ab12", 16)
	otherCtr = strings.Repeat("cd34", 16)
)

func TestParseCgroup(t *testing.T) {
	pod := Owner{Kind: OwnerPod, PodUID: uid, ContainerID: ctr}
	static := Owner{Kind: OwnerPod, PodUID: digest, ContainerID: ctr}
	tests := []struct {
		name, text string
		want       Owner
	}{
		{"v2, systemd, containerd, burstable",
			"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uidSlice + ".slice/cri-containerd-" + ctr + ".scope\n", pod},
		{"v2, systemd, CRI-O, guaranteed",
			"0::/kubepods.slice/kubepods-pod" + uidSlice + ".slice/crio-" + ctr + ".scope\n", pod},
		{"v2, systemd, CRI-O, cgroup inside of the container",
			"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + uidSlice + ".slice/crio-" + ctr + ".scope/container\n", pod},
		{"v2, systemd, kubelet below a slice of its own (kind)",
			"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" + uidSlice + ".slice/cri-containerd-" + ctr + ".scope\n", pod},
		{"v2, cgroupfs, containerd",
			"0::/kubepods/burstable/pod" + uid + "/" + ctr + "\n", pod},
		{"v2, cgroupfs, guaranteed",
			"0::/kubepods/pod" + uid + "/" + ctr + "\n", pod},
		{"v1, cgroupfs",
			"12:devices:/kubepods/besteffort/pod" + uid + "/" + ctr + "\n11:memory:/kubepods/besteffort/pod" + uid + "/" + ctr + "\n1:name=systemd:/kubepods/besteffort/pod" + uid + "/" + ctr + "\n", pod},
		{"v1, systemd, one hierarchy without the pod",
			"12:devices:/kubepods.slice/kubepods-pod" + uidSlice + ".slice/docker-" + ctr + ".scope\n11:rdma:/\n", pod},
		{"v1 and v2 together",
			"1:name=systemd:/\n0::/kubepods.slice/kubepods-pod" + uidSlice + ".slice/cri-containerd-" + ctr + ".scope\n", pod},
		{"v1, runtime and kubelet disagree about the driver",
			"8:pids:/system.slice/containerd.service/kubepods-burstable-pod" + uidSlice + ".slice:cri-containerd:" + ctr + "\n", pod},
		{"static pod, systemd",
			"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + digest + ".slice/cri-containerd-" + ctr + ".scope\n", static},
		{"static pod, cgroupfs",
			"0::/kubepods/burstable/pod" + digest + "/" + ctr + "\n", static},
		{"the pod's own cgroup",
			"0::/kubepods/burstable/pod" + uid + "\n", Owner{Kind: OwnerPod, PodUID: uid}},
		{"seen from another container, systemd",
			"0::/../../kubepods-burstable-pod" + uidSlice + ".slice/cri-containerd-" + ctr + ".scope\n", pod},
		{"seen from another pod of the same class, cgroupfs",
			"0::/../../pod" + uid + "/" + ctr + "\n", pod},
		{"seen from another pod of another class, cgroupfs",
			"0::/../../../burstable/pod" + uid + "/" + ctr + "\n", pod},
		{"a pod in a node that is itself a container: the pod",
			"0::/docker/" + otherCtr + "/kubelet/kubepods/burstable/pod" + uid + "/" + ctr + "\n",
			Owner{Kind: OwnerPod, PodUID: uid, ContainerID: ctr}},
		{"a container run inside of a pod: the pod's container",
			"0::/kubepods/burstable/pod" + uid + "/" + ctr + "/docker/" + otherCtr + "\n", pod},
		{"a container of no pod, systemd",
			"0::/system.slice/docker-" + ctr + ".scope\n", Owner{Kind: OwnerContainer, ContainerID: ctr}},
		{"a container of no pod, cgroupfs",
			"5:devices:/docker/" + ctr + "\n0::/\n", Owner{Kind: OwnerContainer, ContainerID: ctr}},
		{"a service", "0::/system.slice/nvidia-persistenced.service\n", Owner{Kind: OwnerHost}},
		{"a login", "0::/user.slice/user-1000.slice/session-3.scope\n", Owner{Kind: OwnerHost}},
		{"a service seen from a container", "0::/../../../../system.slice/kubelet.service\n", Owner{Kind: OwnerHost}},
		{"a folder that only begins like a pod's", "0::/user.slice/podman-1.scope\n", Owner{Kind: OwnerHost}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ParseCgroup(tt.text); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestParseCgroupUnknown(t *testing.T) {
	tests := []struct{ name, text, why string }{
		{"root of the namespace", "0::/\n", "the root of this cgroup namespace"},
		{"parents of the namespace alone", "0::/../..\n", "the root of this cgroup namespace"},
		{"nothing", "", "the root of this cgroup namespace"},
		{"no cgroup file", "hello\n", "not a line of a cgroup file"},
		{"two pods", "2:memory:/kubepods/pod" + uid + "/" + ctr + "\n1:cpu:/kubepods/pod" + otherUID + "/" + ctr + "\n", "two pods"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ParseCgroup(tt.text)
			if got.Kind != OwnerUnknown || got.PodUID != "" || !strings.Contains(got.Detail, tt.why) {
				t.Errorf("got %+v, want unknown because of %q", got, tt.why)
			}
		})
	}
}

func TestOwnersInProc(t *testing.T) {
	proc := t.TempDir()
	dir := filepath.Join(proc, "4711")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cgroup": "0::/kubepods/pod" + uid + "/" + ctr + "\n", "comm": "python3\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command, owner := ownersIn(proc)(4711)
	if want := (Owner{Kind: OwnerPod, PodUID: uid, ContainerID: ctr}); command != "python3" || owner != want {
		t.Errorf("process 4711 is %q of %+v, want python3 of %+v", command, owner, want)
	}
	if _, owner := ownersIn(proc)(4712); owner.Kind != OwnerUnknown || !strings.Contains(owner.Detail, "no such process") {
		t.Errorf("a process that is not there is of %+v, want unknown", owner)
	}
	if _, owner := ownersIn("")(4711); owner.Kind != OwnerUnknown || !strings.Contains(owner.Detail, "hostPID") {
		t.Errorf("without a process table the owner is %+v, want unknown for want of hostPID", owner)
	}
}
