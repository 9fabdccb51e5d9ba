package pending

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// waiter is a pod like the ward's of an owner.
func (w *ward) waiter(owner, name string, age time.Duration) *cluster.Pod {
	p := w.pod
	p.Name, p.UID, p.Created = name, "", now.Add(-age)
	p.Owner = cluster.Owner{Kind: "Job", Name: owner}
	w.Pods = append(w.Pods, p)
	return &w.Pods[len(w.Pods)-1]
}

func TestWaiters(t *testing.T) {
	t.Parallel()
	w := newWard()
	w.hold("serve", "gpu-0", "gpu-1")
	w.unschedulable(sayCannot)
	w.waiter("old", "old-1", 2*time.Hour)
	w.waiter("old", "old-0", 3*time.Hour)
	w.waiter("new", "new-0", time.Minute)
	w.waiter("young", "young-0", 10*time.Second)
	other := w.waiter("other", "other-0", time.Hour)
	other.Requests = []cluster.Request{{Container: "c", Resource: "amd.com/gpu", Count: 1}}
	failing := w.waiter("failing", "failing-0", time.Second)
	failing.Node, failing.Placement, failing.Scheduled = "gpu-1", nil, nil
	failing.Waiting, failing.WaitingMessage = "CreateContainerConfigError", "endpoint not found in cache for a registered resource: nvidia.com/gpu"
	running := w.waiter("running", "running-0", time.Hour)
	running.Node, running.Phase, running.Ready = "gpu-1", corev1.PodRunning, true

	got := WaitersOf(&w.Snapshot, nil, options())
	want := []string{"job/team/old 2 team/old-0 devices-taken", "job/team/new 1 team/new-0 devices-taken", "job/team/failing 1 team/failing-0 kubelet-remembers-plugin"}
	if text := texts(got); text != strings.Join(want, "\n") || got.More != 0 {
		t.Errorf("waiters\n%s\nwant\n%s", text, strings.Join(want, "\n"))
	}
}

func texts(w *Waiters) string {
	var out []string
	for _, o := range w.Owners {
		out = append(out, fmt.Sprintf("%s %d %s %s", o.Owner, o.Pods, o.Pod, o.Cause))
	}
	return strings.Join(out, "\n")
}

func TestWaitersAreBounded(t *testing.T) {
	t.Parallel()
	w := newWard()
	w.unschedulable(sayCannot)
	for i := range 13 {
		w.waiter(fmt.Sprintf("job-%02d", i), fmt.Sprintf("a-%02d", i), time.Duration(60-i)*time.Minute)
		w.waiter(fmt.Sprintf("job-%02d", i), fmt.Sprintf("b-%02d", i), time.Minute)
	}
	got := WaitersOf(&w.Snapshot, nil, options())
	if len(got.Owners) != 10 || got.More != 3 || got.MorePods != 6 || got.Owners[0].Owner != "job/team/job-00" {
		t.Errorf("%d owners, %d more with %d pods, the first %s", len(got.Owners), got.More, got.MorePods, got.Owners[0].Owner)
	}
}

// Of a pool there are the pods that are on its nodes or may go there.
func TestWaitersOfNodes(t *testing.T) {
	t.Parallel()
	w := newWard()
	w.unschedulable(sayCannot)
	w.waiter("here", "here-0", time.Hour)
	elsewhere := w.waiter("elsewhere", "elsewhere-0", time.Hour)
	elsewhere.Placement = &cluster.Placement{NodeSelector: map[string]string{"pool": "other"}}
	if got := WaitersOf(&w.Snapshot, &cluster.NodePool{Nodes: []string{"gpu-1"}}, options()); texts(got) != "job/team/here 1 team/here-0 unknown" {
		t.Errorf("waiters %s", texts(got))
	}
	if got := WaitersOf(&w.Snapshot, &cluster.NodePool{}, options()); got != nil {
		t.Errorf("waiters of no node: %s", texts(got))
	}
}
