package status

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/pending"
)

// Status and verification say why pods wait, and neither result nor exit code depends on
// it: the reason may lie elsewhere.
func TestWaiting(t *testing.T) {
	t.Parallel()
	s := switched(t)
	now := time.Unix(10_000, 0)
	pod := cluster.Pod{Namespace: "team", Name: "train", UID: "t", Phase: corev1.PodPending, Created: now.Add(-time.Minute),
		Requests:  []cluster.Request{{Container: "c", Resource: "nvidia.com/gpu", Count: 4}},
		Placement: &cluster.Placement{NodeSelector: map[string]string{"dramigrate.dev/allocation": "dra"}},
		Scheduled: &cluster.Condition{Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: 1 cannot allocate all claims."}}
	s.Pods = append(s.Pods, pod)
	options := Options{Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com", Now: now, Waiting: true}
	target := Target{Pool: cluster.NodePool{Name: "gpu-a", Nodes: []string{"a-1"}}, Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com", Now: now}

	v := Verify(context.Background(), s, target)
	if v.Result != OK {
		t.Errorf("result %s, want ok", v.Result)
	}
	for what, w := range map[string]*pending.Waiters{"status": New(s, options).Waiting, "verification": v.Waiting} {
		if w == nil || len(w.Owners) != 1 || w.Owners[0].Owner != "pod/team/train" || w.Owners[0].Cause != pending.NodesTooSmall {
			t.Errorf("%s: waiting %+v, want pod/team/train for its size", what, w)
		}
	}
	options.Waiting = false
	if w := New(s, options).Waiting; w != nil {
		t.Errorf("waiting %+v, and nobody has asked", w)
	}
	options.Waiting, options.Now = true, now.Add(-31*time.Second)
	if w := New(s, options).Waiting; w != nil {
		t.Errorf("waiting %+v after 29 s", w)
	}
	options.Now = now.Add(-time.Hour)
	if w := New(s, options).Waiting; w == nil || len(w.Owners) != 1 {
		t.Errorf("waiting %+v, want the pod that is of newer files than the nodes", w)
	}
	other := cluster.NodePool{Name: "gpu-b"}
	options.Now, options.Pool = now, &other
	if w := New(s, options).Waiting; w != nil {
		t.Errorf("waiting %+v, and the pool has no node", w)
	}
}
