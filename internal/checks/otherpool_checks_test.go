package checks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// twoPools is a cluster with an old pool "gpu" (n1, n2), whose plugin is part of its
// nodes, and a new pool "other" of m1, on which the driver runs; one pod holds one of
// the two devices of n1.
func twoPools() *state {
	s := prepared()
	s.DaemonSets = s.DaemonSets[1:]
	for _, n := range []string{"m1", "n1", "n2"} {
		s.stop("plugin", n)
	}
	s.node("m1").Labels["dramigrate.dev/allocation"] = "dra"
	s.node("m1").Status.Allocatable[gpu] = resource.MustParse("0")
	s.runDaemon("driver", "m1")
	s.Slices = append(s.Slices, nodeSlice("m1", driver, "gpu-0", "gpu-1"))
	s.pod("train").Placement = &cluster.Placement{}
	return s
}

// role writes the record of a move from pool gpu into pool other.
func (s *state) role(node string, role cluster.Role, operation string, over bool) {
	st := cluster.NodeState{
		Pool: "gpu", Selector: "karpenter.sh/nodepool=gpu", Operation: operation, Run: "r1", Epoch: 1, Role: role,
		Into: &cluster.PoolRef{Name: "other", Selector: "karpenter.sh/nodepool=other"},
	}
	now := ptr.To(metav1.Unix(1, 0))
	switch {
	case over && (role == cluster.RoleOld) == (operation == Migrate):
		st.RetiredAt = now
	case over:
		st.OpenedAt = now
	}
	raw, err := st.Encode()
	if err != nil {
		panic(err)
	}
	s.node(node).Annotations["dramigrate.dev/state"] = raw
	s.node(node).Spec.Unschedulable = st.OpenedAt == nil
}

// ofBoth runs the checks of a move from pool gpu into pool other.
func ofBoth(s *state, operation string) []Finding {
	in := s.of(operation)
	in.Pool = cluster.NodePool{Name: "gpu", Selector: "karpenter.sh/nodepool=gpu"}
	for _, n := range []string{"n1", "n2"} {
		if _, there := s.Node(n); there {
			in.Pool.Nodes = append(in.Pool.Nodes, n)
		}
	}
	return RunBoth(in, cluster.NodePool{Name: "other", Selector: "karpenter.sh/nodepool=other", Nodes: []string{"m1"}})
}

func TestIntoAnotherPool(t *testing.T) {
	t.Parallel()
	nothing := func(*state) {}
	for _, c := range []struct {
		title, operation string
		change           func(*state)
		code             string // "" for all that stop
		want             []string
		says             string
	}{
		{"all is well", Migrate, nothing, "", nil, ""},

		{"the driver is not there", Migrate, func(s *state) { s.DaemonSets = nil; s.stop("driver", "m1") }, "DRM050",
			[]string{"blocker driver/gpu.nvidia.com"}, "no DaemonSet runs the driver"},
		{"the new nodes have no label", Migrate, func(s *state) {
			delete(s.node("m1").Labels, "dramigrate.dev/allocation")
			s.stop("driver", "m1")
			s.Slices = nil
		}, "DRM050", []string{"blocker node/m1"}, "lacks label dramigrate.dev/allocation=dra"},
		{"the driver's pod is not ready", Migrate, func(s *state) { s.pod("driver-m1").Ready = false }, "DRM050", []string{"blocker node/m1"}, "not ready"},
		{"slices are missing", Migrate, func(s *state) { s.Slices[0].Spec.Pool.ResourceSliceCount = 2 }, "DRM050", []string{"blocker node/m1"}, "1 of 2 slices"},
		{"slices without a device", Migrate, func(s *state) { s.Slices[0].Spec.Devices = nil }, "DRM050", []string{"blocker node/m1"}, "without devices"},

		{"a plugin on the new nodes", Migrate, func(s *state) { s.node("m1").Status.Allocatable[gpu] = resource.MustParse("2") }, "DRM051",
			[]string{"blocker node/m1"}, "offers 2 of nvidia.com/gpu"},

		{"the new nodes are cordoned", Migrate, func(s *state) { s.node("m1").Spec.Unschedulable = true }, "DRM052", []string{"blocker pool/other"}, "every node"},
		// What a run has cordoned a run may open.
		{"a run has cordoned them", Migrate, func(s *state) { s.role("m1", cluster.RoleNew, Migrate, false) }, "DRM052", nil, ""},
		{"they were open, and somebody has cordoned them since", Migrate, func(s *state) {
			s.role("m1", cluster.RoleNew, Migrate, true)
			s.node("m1").Spec.Unschedulable = true
		}, "DRM052", []string{"blocker pool/other"}, ""},

		{"as many devices as needed", Migrate, func(s *state) { s.pod("train").Requests[0].Count = 2 }, "DRM053", nil, ""},
		{"one device too few", Migrate, func(s *state) { s.addPod("more", "n2", 2) }, "DRM053", []string{"warning pool/other"},
			"has 2 of 2 devices free, and the pods of pool gpu hold 3: pods with 1 device would wait"},
		{"what a killed run's canary has, the next run takes from it", Migrate, func(s *state) {
			s.addPod("canary", "m1", 2)
			s.pod("canary").Labels = map[string]string{cluster.HelperLabel: "canary"}
			s.claim("of-canary", driver, "m1", "gpu-0", "canary")
		}, "DRM053", nil, ""},
		{"what explicit claims have", Migrate, func(s *state) {
			s.addPod("more", "n2", 1)
			s.addPod("claims", "m1", 0).Claims = []string{"own"}
			s.claim("own", driver, "m1", "gpu-0", "claims")
		}, "DRM053", []string{"warning pool/other"}, "has 1 of 2 devices free, and the pods of pool gpu hold 2: pods with 1 device would wait"},
		{"an older generation of the driver's slices", Migrate, func(s *state) {
			old := *s.Slices[len(s.Slices)-1].DeepCopy()
			s.Slices[len(s.Slices)-1].Spec.Pool.Generation++
			s.Slices = append(s.Slices, old)
			s.addPod("there", "m1", 2)
		}, "DRM053", []string{"blocker pool/other"}, "has 0 of 2 devices free"},
		{"partitions of devices that are taken", Migrate, func(s *state) {
			mig := "mig"
			d := s.Slices[len(s.Slices)-1].Spec.Devices
			d[1].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &mig}}
			s.addPod("claims", "m1", 0).Claims = []string{"own"}
			s.claim("own", driver, "m1", "gpu-0", "claims")
		}, "DRM053", []string{"blocker pool/other"}, "has 0 of 2 devices free"},
		{"devices that the driver has tainted", Migrate, func(s *state) {
			d := s.Slices[len(s.Slices)-1].Spec.Devices
			d[0].Taints = []resourcev1.DeviceTaint{{Key: "gpu.nvidia.com/xid", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
			d[1].Taints = []resourcev1.DeviceTaint{{Key: "gpu.nvidia.com/lost", Effect: resourcev1.DeviceTaintEffectNoExecute}}
		}, "DRM053", []string{"blocker pool/other"}, "has 0 of 2 devices free"},
		{"devices of which claims have shares", Migrate, func(s *state) {
			share := types.UID("share-1")
			for _, device := range []string{"gpu-0", "gpu-1"} {
				s.claim("of-"+device, driver, "m1", device, "").Status.Allocation.Devices.Results[0].ShareID = &share
			}
		}, "DRM053", []string{"blocker pool/other"}, "has 0 of 2 devices free"},
		{"two claims share one device", Migrate, func(s *state) {
			s.claim("one", driver, "m1", "gpu-0", "")
			s.claim("two", driver, "m1", "gpu-0", "")
		}, "DRM053", nil, ""},
		{"no device free", Migrate, func(s *state) { s.addPod("there", "m1", 2) }, "DRM053", []string{"blocker pool/other"}, "has 0 of 2 devices free"},

		{"a workload is kept to the old pool", Migrate, func(s *state) {
			s.pod("train").Placement.NodeSelector = map[string]string{"karpenter.sh/nodepool": "gpu"}
		}, "DRM054", []string{"blocker replicaset/team/train"}, "its labels are not those"},
		{"a workload that does not tolerate the new pool's taint", Migrate, func(s *state) {
			s.node("m1").Spec.Taints = []corev1.Taint{{Key: "sku", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, "DRM054", []string{"blocker replicaset/team/train"}, "does not tolerate its taint sku=gpu:NoSchedule"},
		{"a workload that does", Migrate, func(s *state) {
			s.node("m1").Spec.Taints = []corev1.Taint{{Key: "sku", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
			s.pod("train").Placement.Tolerations = []corev1.Toleration{{Key: "sku", Operator: corev1.TolerationOpExists}}
		}, "DRM054", nil, ""},
		{"a taint that only prefers", Migrate, func(s *state) {
			s.node("m1").Spec.Taints = []corev1.Taint{{Key: "sku", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, "DRM054", nil, ""},

		{"a move that was begun", Migrate, func(s *state) { s.role("n1", cluster.RoleOld, Migrate, true) }, "DRM055", nil, ""},
		{"a node of the new pool is in another pool's move", Migrate, func(s *state) { s.mark("m1", "third", true) }, "DRM012", []string{"blocker node/m1"}, "pool third"},

		{"back again", Rollback, func(s *state) { s.role("n1", cluster.RoleOld, Migrate, true) }, "", nil, ""},
		{"an old node is gone", Rollback, func(s *state) {
			s.Nodes = s.Nodes[:3] // n2 is the last
			s.Journals = []cluster.Journal{{Pool: "gpu", Nodes: []string{"n1", "n2"}}}
		}, "DRM056", []string{"warning pool/gpu"}, "node n2 of it are gone"},
		{"all old nodes are gone", Rollback, func(s *state) {
			s.Nodes = s.Nodes[:2]
			s.Journals = []cluster.Journal{{Pool: "gpu", Nodes: []string{"n1", "n2"}}}
		}, "DRM056", []string{"blocker pool/gpu"}, "gone: n1, n2"},
		{"a workload that DRA alone can serve has come", Rollback, func(s *state) {
			s.role("m1", cluster.RoleNew, Migrate, true)
			s.addPod("claims", "m1", 0).Claims = []string{"own"}
			s.claim("own", driver, "m1", "gpu-0", "claims")
		}, "DRM016", []string{"blocker replicaset/team/claims"}, ""},
	} {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			s := twoPools()
			c.change(s)
			findings := ofBoth(s, c.operation)
			if c.code == "" {
				if Stops(findings) {
					t.Fatalf("%+v, want nothing that stops", findings)
				}
				return
			}
			if diff := cmp.Diff(c.want, brief(findings, c.code)); diff != "" {
				t.Errorf("findings of %s (-want +got):\n%s", c.code, diff)
			}
			for _, f := range findings {
				if f.Code == c.code && !strings.Contains(f.Message, c.says) {
					t.Errorf("message %q, want one with %q", f.Message, c.says)
				}
			}
		})
	}
}

// TestLabelRemedy wants the command of the cloud that makes the nodes.
func TestLabelRemedy(t *testing.T) {
	t.Parallel()
	n := gpuNode("aks-1", "x", 0)
	n.Labels = map[string]string{"kubernetes.azure.com/agentpool": "gpudra"}
	if got := labelRemedy([]*corev1.Node{&n}); !strings.Contains(got, "az aks nodepool update") || !strings.Contains(got, "--name gpudra --labels dramigrate.dev/allocation=dra") {
		t.Errorf("%q, want the command of AKS", got)
	}
	n.Labels = nil
	if got := labelRemedy([]*corev1.Node{&n}); !strings.Contains(got, "kubectl label node NODE dramigrate.dev/allocation=dra") {
		t.Errorf("%q, want a command where no cloud is known", got)
	}
}

// TestWentElsewhere wants a move in place, and one into a third pool, to be refused
// while the workloads are in another pool; what prepare did is then needed there.
func TestWentElsewhere(t *testing.T) {
	t.Parallel()
	s := twoPools()
	s.role("n1", cluster.RoleOld, Migrate, true)
	s.role("m1", cluster.RoleNew, Migrate, true)
	if diff := cmp.Diff([]string{"blocker pool/gpu"}, brief(Run(s.of(Migrate)), "DRM055")); diff != "" {
		t.Errorf("in place (-want +got):\n%s", diff)
	}
	in := s.of(Migrate)
	if diff := cmp.Diff([]string{"blocker pool/gpu"}, brief(RunBoth(in, cluster.NodePool{Name: "third"}), "DRM055")); diff != "" {
		t.Errorf("into a third pool (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"blocker node/m1", "blocker node/n1"}, brief(Run(s.of(Unprepare)), "DRM024")); diff != "" {
		t.Errorf("unprepare (-want +got):\n%s", diff)
	}
	// Back from there: the old nodes have no record, the new ones stay closed.
	delete(s.node("n1").Annotations, "dramigrate.dev/state")
	s.role("m1", cluster.RoleNew, Rollback, true)
	if got := brief(Run(s.of(Migrate)), "DRM055"); len(got) > 0 {
		t.Errorf("after a rollback: %v, want nothing", got)
	}
	if diff := cmp.Diff([]string{"blocker node/m1"}, brief(Run(s.of(Unprepare)), "DRM024")); diff != "" {
		t.Errorf("unprepare after a rollback (-want +got):\n%s", diff)
	}
}
