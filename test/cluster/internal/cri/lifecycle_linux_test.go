package cri

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// printed waits for a line of the container's output.
func (n *node) printed(id, line string) {
	n.t.Helper()
	n.until("the container prints "+line, func() bool { return slices.Contains(n.output(id), line) })
}

// stopping calls StopContainer and returns its answer when it comes.
func (n *node) stopping(id string, grace time.Duration) <-chan error {
	answer := make(chan error, 1)
	ctx := n.ctx()
	go func() {
		_, err := n.runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: int64(grace / time.Second)})
		answer <- err
	}()
	return answer
}

func TestStopIsGraceful(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), n.config("wait", "exit=7"))
	n.printed(id, "ready")
	// The grace is longer than the test's patience, so that only SIGTERM can end it in time.
	if err := <-n.stopping(id, 10*patience); err != nil {
		t.Fatalf("StopContainer: %v", err)
	}
	if s := n.status(id); s.State != runtimeapi.ContainerState_CONTAINER_EXITED || s.ExitCode != 7 {
		t.Errorf("state %s, exit code %d; want exited with the command's own code 7", s.State, s.ExitCode)
	}
	expect(t, n.output(id), "ready", "got terminated")
}

func TestStopSignal(t *testing.T) {
	n := newNode(t)
	config := n.config("wait")
	config.StopSignal = runtimeapi.Signal_SIGNAL_SIGUSR1
	id := n.start(n.sandbox("pod"), config)
	n.printed(id, "ready")
	if err := <-n.stopping(id, 10*patience); err != nil {
		t.Fatalf("StopContainer: %v", err)
	}
	expect(t, n.output(id), "ready", "got user defined signal 1")
	if s := n.status(id); s.StopSignal != runtimeapi.Signal_SIGNAL_SIGUSR1 {
		t.Errorf("status reports stop signal %s, want SIGUSR1", s.StopSignal)
	}
}

func TestKillAfterGrace(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), n.config("stubborn"))
	n.printed(id, "ready")
	const grace = time.Second
	begin := time.Now()
	if err := <-n.stopping(id, grace); err != nil {
		t.Fatalf("StopContainer: %v", err)
	}
	if took := time.Since(begin); took < grace {
		t.Errorf("killed after %s, before its grace of %s was over", took, grace)
	}
	if s := n.status(id); s.ExitCode != 128+int32(syscall.SIGKILL) || s.Reason != "Error" {
		t.Errorf("exit code %d, reason %s; want 137, Error", s.ExitCode, s.Reason)
	}
}

func TestStopWithoutGraceKills(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), n.config("stubborn"))
	n.printed(id, "ready")
	if err := <-n.stopping(id, 0); err != nil {
		t.Fatalf("StopContainer: %v", err)
	}
	if s := n.status(id); s.ExitCode != 137 {
		t.Errorf("exit code %d, want 137", s.ExitCode)
	}
}

func TestStopOfTheUnknownAndTheEnded(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), n.config())
	n.ended(id)
	for _, id := range []string{id, "no-such-container"} {
		if err := <-n.stopping(id, time.Second); err != nil {
			t.Errorf("StopContainer of %s: %v; want success", id, err)
		}
	}
}

func TestSandboxLifecycle(t *testing.T) {
	n := newNode(t)
	sandbox := n.sandbox("pod")
	id := n.start(sandbox, n.config("child", "stubborn"))
	n.printed(id, "ready")
	state := func() (runtimeapi.PodSandboxState, string) {
		r, err := n.runtime.PodSandboxStatus(n.ctx(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox})
		if err != nil {
			t.Fatalf("PodSandboxStatus: %v", err)
		}
		return r.Status.State, r.Status.Network.Ip
	}
	if s, ip := state(); s != runtimeapi.PodSandboxState_SANDBOX_READY || ip != "127.0.0.1" {
		t.Errorf("sandbox is %s at %q, want ready at 127.0.0.1", s, ip)
	}
	if _, err := n.runtime.StopPodSandbox(n.ctx(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
		t.Fatalf("StopPodSandbox: %v", err)
	}
	if s, _ := state(); s != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		t.Errorf("stopped sandbox is %s", s)
	}
	if s := n.status(id); s.ExitCode != 137 {
		t.Errorf("container of a stopped sandbox: state %s, code %d; want 137", s.State, s.ExitCode)
	}
	if _, err := n.create(sandbox, n.config()); err == nil {
		t.Error("a container was created in a stopped sandbox")
	}
	if _, err := n.runtime.RemovePodSandbox(n.ctx(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox}); err != nil {
		t.Fatalf("RemovePodSandbox: %v", err)
	}
	if _, err := n.runtime.PodSandboxStatus(n.ctx(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox}); status.Code(err) != codes.NotFound {
		t.Errorf("status of a removed sandbox: %v, want NotFound", err)
	}
	if _, err := n.runtime.ContainerStatus(n.ctx(), &runtimeapi.ContainerStatusRequest{ContainerId: id}); status.Code(err) != codes.NotFound {
		t.Errorf("status of a removed sandbox's container: %v, want NotFound", err)
	}
	expectNoProcesses(t)
}

func TestFilters(t *testing.T) {
	n := newNode(t)
	a, b := n.sandbox("a"), n.sandbox("b")
	config := n.config("stubborn")
	config.Labels = map[string]string{"app": "x", "tier": "y"}
	running := n.start(a, config)
	created, err := n.create(b, n.config())
	if err != nil {
		t.Fatalf("CreateContainer: %v", err)
	}
	state := func(s runtimeapi.ContainerState) *runtimeapi.ContainerStateValue {
		return &runtimeapi.ContainerStateValue{State: s}
	}
	for _, tc := range []struct {
		name   string
		filter *runtimeapi.ContainerFilter
		want   []string
	}{
		{"none", nil, []string{running, created}},
		{"id", &runtimeapi.ContainerFilter{Id: created}, []string{created}},
		{"sandbox", &runtimeapi.ContainerFilter{PodSandboxId: a}, []string{running}},
		{"state", &runtimeapi.ContainerFilter{State: state(runtimeapi.ContainerState_CONTAINER_CREATED)}, []string{created}},
		{"running", &runtimeapi.ContainerFilter{State: state(runtimeapi.ContainerState_CONTAINER_RUNNING)}, []string{running}},
		{"label", &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"app": "x"}}, []string{running}},
		{"other label", &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"app": "x", "tier": "z"}}, nil},
	} {
		r, err := n.runtime.ListContainers(n.ctx(), &runtimeapi.ListContainersRequest{Filter: tc.filter})
		if err != nil {
			t.Fatalf("ListContainers: %v", err)
		}
		var got []string
		for _, c := range r.Containers {
			got = append(got, c.Id)
		}
		slices.Sort(got)
		slices.Sort(tc.want)
		if !slices.Equal(got, tc.want) {
			t.Errorf("filter by %s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestManyContainersEndWithTheServer(t *testing.T) {
	n := newNode(t)
	config := n.config("stubborn")
	var wg sync.WaitGroup
	const pods, perPod = 20, 5
	for i := range pods {
		sandbox := n.sandbox(fmt.Sprintf("pod-%d", i))
		for range perPod {
			wg.Go(func() {
				id, err := n.create(sandbox, config)
				if err == nil {
					_, err = n.runtime.StartContainer(context.Background(), &runtimeapi.StartContainerRequest{ContainerId: id})
				}
				if err != nil {
					t.Errorf("container of pod-%d: %v", i, err)
				}
			})
		}
	}
	wg.Wait()
	if got := len(descendants(t)); got != pods*perPod {
		t.Errorf("%d processes, want one for each of %d containers", got, pods*perPod)
	}
	n.stop()
	expectNoProcesses(t)
}

// descendants are the processes below this test, zombies included.
func descendants(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[string]string{}
	for _, e := range entries {
		if raw, err := os.ReadFile("/proc/" + e.Name() + "/stat"); err == nil {
			parents[e.Name()] = statFields(raw)[1]
		}
	}
	self := fmt.Sprint(os.Getpid())
	var out []string
	for pid := range parents {
		for p := parents[pid]; p != "" && p != "0"; p = parents[p] {
			if p == self {
				out = append(out, pid)
				break
			}
		}
	}
	return out
}

func expectNoProcesses(t *testing.T) {
	t.Helper()
	if left := descendants(t); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}
