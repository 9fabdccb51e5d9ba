package cri

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestReady(t *testing.T) {
	n := newNode(t)
	version, err := n.runtime.Version(n.ctx(), &runtimeapi.VersionRequest{})
	if err != nil || version.RuntimeApiVersion != "v1" {
		t.Errorf("Version: %v, %v; want API version v1", version, err)
	}
	r, err := n.runtime.Status(n.ctx(), &runtimeapi.StatusRequest{})
	if err != nil {
		t.Fatalf("Status: %v", err)
	}
	ready := map[string]bool{}
	for _, c := range r.Status.Conditions {
		ready[c.Type] = c.Status
	}
	// The two conditions without which the kubelet keeps its node NotReady.
	if !ready["RuntimeReady"] || !ready["NetworkReady"] {
		t.Errorf("conditions %v; want RuntimeReady and NetworkReady", ready)
	}
	events, err := n.runtime.GetContainerEvents(n.ctx(), &runtimeapi.GetEventsRequest{})
	if err == nil {
		_, err = events.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("GetContainerEvents: %v; want Unimplemented, for the kubelet to relist instead", err)
	}
}

func TestStats(t *testing.T) {
	n := newNode(t)
	sandbox := n.sandbox("pod")
	id := n.start(sandbox, n.config("stubborn"))
	n.printed(id, "ready")
	r, err := n.runtime.ListContainerStats(n.ctx(), &runtimeapi.ListContainerStatsRequest{
		Filter: &runtimeapi.ContainerStatsFilter{PodSandboxId: sandbox},
	})
	if err != nil || len(r.Stats) != 1 {
		t.Fatalf("ListContainerStats: %v, %v", r, err)
	}
	// A Go program has at least its own code in memory, and less than a test machine.
	if rss := r.Stats[0].GetMemory().GetRssBytes().GetValue(); rss < 1<<20 || rss > 1<<30 {
		t.Errorf("resident memory %d bytes; want between 1 MiB and 1 GiB", rss)
	}
	pod, err := n.runtime.PodSandboxStats(n.ctx(), &runtimeapi.PodSandboxStatsRequest{PodSandboxId: sandbox})
	if err != nil || len(pod.Stats.Linux.Containers) != 1 {
		t.Errorf("PodSandboxStats: %v, %v", pod, err)
	}
}

// A server that is killed cannot clean up, so the kernel has to.
func TestContainersDieWithAKilledServer(t *testing.T) {
	cfg := newConfig(t)
	raw, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	n := connect(t, cfg)
	file := n.write("cri.json", string(raw))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := &exec.Cmd{Path: self, Args: []string{serverCommand, "--config", file}, Stderr: os.Stderr}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill() })

	user := n.config("child", "stubborn")
	user.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
		RunAsUser: &runtimeapi.Int64Value{Value: 1234},
	}}
	nodePIDs := n.config("stubborn")
	nodePIDs.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
		NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_NODE},
	}}
	for name, config := range map[string]*runtimeapi.ContainerConfig{
		"root": n.config("child", "stubborn"), "user": user, "node-pids": nodePIDs,
	} {
		n.printed(n.start(n.sandbox(name), config), "ready")
	}
	processes := descendants(t)
	if want := 1 + 2 + 2 + 1; len(processes) != want {
		t.Errorf("%d processes, want %d: the server, two containers with a child, and one without", len(processes), want)
	}
	if err := server.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	server.Wait()
	n.until("all processes of the killed server are gone", func() bool {
		for _, pid := range processes {
			if running(pid) {
				return false
			}
		}
		return true
	})
}

// running says whether a process has not ended; whoever inherits it may not have reaped it yet.
func running(pid string) bool {
	if _, err := strconv.Atoi(pid); err != nil {
		return false
	}
	raw, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return false
	}
	return statFields(raw)[0] != "Z"
}
