package status

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// wentInto is a cluster in which the workloads of pool old (o-1) went into pool new
// (n-1): o-1 is closed, with what its plugin offers, n-1 is open.
func wentInto(t *testing.T) *cluster.Snapshot {
	t.Helper()
	now := metav1.Unix(1000, 0)
	node := func(name, pool string, gpus string, st cluster.NodeState) corev1.Node {
		st.Pool, st.Selector, st.Operation, st.Run = "old", "eks.amazonaws.com/nodegroup=old", "migrate", "r1"
		st.Into = &cluster.PoolRef{Name: "new", Selector: "eks.amazonaws.com/nodegroup=new"}
		text, err := st.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"eks.amazonaws.com/nodegroup": pool}, Annotations: map[string]string{cluster.StateAnnotation: text}},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}, Capacity: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}
	}
	old := node("o-1", "old", "2", cluster.NodeState{Role: cluster.RoleOld, Phase: "retire", RetiredAt: &now, Offered: map[string]int64{"nvidia.com/gpu": 2}})
	old.Spec.Unschedulable = true
	old.Spec.Taints = []corev1.Taint{{Key: "dramigrate.dev/switching", Effect: corev1.TaintEffectNoSchedule}}
	fresh := node("n-1", "new", "0", cluster.NodeState{Role: cluster.RoleNew, Phase: "open", OpenedAt: &now})
	fresh.Labels["dramigrate.dev/allocation"] = "dra"
	return &cluster.Snapshot{Nodes: []corev1.Node{fresh, old}}
}

func poolNamed(s *Status, name string) Pool {
	for _, p := range s.Pools {
		if p.Name == name {
			return p
		}
	}
	return Pool{}
}

// Both pools tell of the other, and nothing of it is out of order.
func TestWentIntoAnotherPool(t *testing.T) {
	s := New(wentInto(t), Options{Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com"})
	if old := poolNamed(s, "old"); old.Into != "new" || old.Retired != 1 || old.Rollback == nil || old.Rollback.Result != OK {
		t.Errorf("%+v, rollback %+v; want one node left, and a way back", old, old.Rollback)
	}
	if fresh := poolNamed(s, "new"); fresh.From != "old" || fresh.Retired != 0 || fresh.DRA != 1 || fresh.Rollback != nil {
		t.Errorf("%+v, want that it takes the workloads of old", fresh)
	}
	if len(s.Strays) > 0 {
		t.Errorf("strays %+v, want none", s.Strays)
	}
}

// The way back needs the plugin as it was.
func TestWayBackFromAnotherPool(t *testing.T) {
	snap := wentInto(t)
	snap.Nodes[1].Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("1")
	s := New(snap, Options{Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com"})
	if r := poolNamed(s, "old").Rollback; r == nil || r.Result != Failed || !strings.Contains(r.Why[0], "offers 1 of nvidia.com/gpu on o-1, and offered 2 before") {
		t.Errorf("%+v, want that a device is missing", r)
	}
	snap.Nodes = snap.Nodes[:1] // o-1 is gone
	s = New(snap, Options{Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com"})
	if r := poolNamed(s, "old").Rollback; r == nil || r.Result != Failed || !strings.Contains(r.Why[0], "no node of the pool is left") {
		t.Errorf("%+v, want that nothing is left to go back to", r)
	}
}

// A node that was left has to be closed, whoever has opened it since.
func TestVerifyAnOldNode(t *testing.T) {
	snap := wentInto(t)
	target := Target{Pool: cluster.NodePool{Name: "old", Nodes: []string{"o-1"}}, Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com"}
	look := func() (result Result, nodes int) {
		v := Verify(t.Context(), snap, target)
		for _, l := range v.Nodes[0].Looks {
			if l.What == "the node is closed to pods" {
				result = l.Result
			}
		}
		return result, len(v.Nodes)
	}
	if v := Verify(t.Context(), snap, target); !v.Nodes[0].Left || v.Nodes[1].Left {
		t.Errorf("left are %t and %t, want the old node alone: no canary may run there", v.Nodes[0].Left, v.Nodes[1].Left)
	}
	if result, nodes := look(); result != OK || nodes != 2 {
		t.Errorf("%s, %d nodes; want it closed, and the new node looked at, too", result, nodes)
	}
	snap.Nodes[1].Spec.Unschedulable = false
	if result, _ := look(); result != Failed {
		t.Errorf("%s, want %s", result, Failed)
	}
}
