package checks

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func TestDRM120(t *testing.T) {
	t.Parallel()
	with := func(finalizers ...string) func(*state) {
		return func(s *state) { s.pod("train").Finalizers = finalizers }
	}
	try(t, "DRM120", []given{
		{"none", Migrate, prepared, nil, nil, ""},
		{"of the Job controller, of Kueue", Migrate, prepared, with("batch.kubernetes.io/job-tracking", "kueue.x-k8s.io/managed"), nil, ""},
		{"of somebody else", Migrate, prepared, with("batch.kubernetes.io/job-tracking", "example.com/flush"), []string{"warning replicaset/team/train"}, "finalizer example.com/flush"},
		{"on the way back", Rollback, migrated, with("example.com/flush"), []string{"warning replicaset/team/train"}, ""},
		{"a pod that stays", Migrate, prepared, func(s *state) { s.addPod("web", "n1", 0).Finalizers = []string{"example.com/flush"} }, nil, ""},
	})
}

func TestDRM121(t *testing.T) {
	t.Parallel()
	leaving := func(s *state) { s.pod("train").Terminating = true }
	train := []string{"warning replicaset/team/train"}
	cases := []given{
		{"nobody leaves", Rollback, migrated, nil, nil, ""},
		{"on its way out", Migrate, prepared, leaving, train, "the drain waits until it is gone"},
		{"with its driver there", Rollback, migrated, leaving, train, "the drain waits until it is gone"},
		// kubernetes/kubernetes#129402
		{"with its driver gone", Rollback, migrated, func(s *state) { leaving(s); s.stop("driver", "n1") }, train, "no pod of driver gpu.nvidia.com is ready"},
		// kubernetes/kubernetes#139772
		{"its claim is not there", Rollback, migrated, func(s *state) {
			leaving(s)
			s.pod("train").WaitingMessage = "failed to unprepare: ResourceClaim not created yet"
		}, train, "ResourceClaim not created yet"},
		// kubernetes-sigs/cluster-api#10706 passes over these; their devices may be in use
		{"on a node that cannot be reached", Rollback, migrated, func(s *state) {
			leaving(s)
			s.node("n1").Status.Conditions[0].Status = corev1.ConditionUnknown
		}, train, "does not report"},
		{"without a device", Migrate, prepared, func(s *state) { s.addPod("web", "n1", 0).Terminating = true }, nil, ""},
	}
	try(t, "DRM121", cases)
	// kubernetes/kubernetes#141471: no remedy may tell to delete by force.
	for _, c := range cases[1:6] {
		s := c.from()
		c.change(s)
		for _, f := range Only(s.of(c.operation), []string{"DRM121"}) {
			if !strings.HasSuffix(f.Remedy, "do not delete it by force: its device may be given to two pods") {
				t.Errorf("%s: remedy %q", c.name, f.Remedy)
			}
		}
	}
}

// n1 and n2 have 2 GPUs each, m1 of another pool has 2; train has 1 on n1.
func TestDRM122(t *testing.T) {
	t.Parallel()
	full := func(s *state) { // 2 on n1, 2 on n2, 2 on m1
		s.addPod("train-2", "n1", 1)
		s.addPod("serve", "n2", 2)
		s.addPod("other", "m1", 2)
	}
	pool := []string{"warning pool/gpu"}
	try(t, "DRM122", []given{
		{"room on the next node", Migrate, prepared, nil, nil, ""},
		{"nothing is free", Migrate, prepared, full, pool, "the pods of node n1 alone need 2 devices (replicaset/team/train, replicaset/team/train-2), and other nodes that admit them have room for pods with none of these"},
		{"one of two is free", Migrate, prepared, func(s *state) { full(s); s.pod("other").Requests[0].Count = 1 }, pool, "and other nodes that admit them have room for pods with 1 of these: while such a node is closed pods with about 1 device wait"},
		{"both are free elsewhere", Migrate, prepared, func(s *state) { full(s); s.pod("other").Phase = corev1.PodSucceeded }, nil, ""},
		{"free where they may not go", Migrate, prepared, func(s *state) {
			full(s)
			s.pod("other").Phase = corev1.PodSucceeded
			for _, p := range []string{"train", "train-2"} {
				s.pod(p).NodeLabels = needs("karpenter.sh/nodepool", "gpu")
			}
		}, pool, "with none of these"},
		{"free on a node that is cordoned", Migrate, prepared, func(s *state) {
			full(s)
			s.pod("other").Phase = corev1.PodSucceeded
			s.node("m1").Spec.Unschedulable = true
		}, pool, ""},
		{"free behind a taint that they do not tolerate", Migrate, prepared, func(s *state) {
			full(s)
			s.pod("other").Phase = corev1.PodSucceeded
			taint("m1", "team")(s)
		}, pool, "with none of these"},
		{"free behind a taint that one of them tolerates", Migrate, prepared, func(s *state) {
			full(s)
			s.pod("other").Phase = corev1.PodSucceeded
			taint("m1", "team")(s)
			s.pod("train").Placement = &cluster.Placement{Tolerations: []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}}
		}, pool, "with 1 of these"},
		{"free, and no memory for both", Migrate, prepared, func(s *state) {
			full(s)
			s.pod("other").Phase = corev1.PodSucceeded
			s.node("m1").Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("10Gi")
			s.pod("train").Memory, s.pod("train-2").Memory = 6<<30, 6<<30
		}, pool, "with 1 of these"},
		{"free, and the CPU is taken", Migrate, prepared, func(s *state) {
			full(s)
			s.pod("other").Requests, s.pod("other").CPU = nil, 3500
			s.node("m1").Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4")
			s.pod("train").CPU, s.pod("train-2").CPU = 1000, 500
		}, pool, "with 1 of these"},
		{"a pod's two devices on two nodes are no room for it", Migrate, prepared, func(s *state) { // 2 on n1 by one pod, 1 free on n2, 1 on m1
			s.pod("train").Requests[0].Count = 2
			s.addPod("serve", "n2", 1)
			s.addPod("other", "m1", 1)
		}, pool, "with none of these"},
		{"back, by the driver's devices", Rollback, migrated, func(s *state) { // gpu-1 of n1, two of n2, two of m1
			s.addPod("serve", "n2", 2)
			s.bridge("serve", gpu, "n2", "gpu-0")
			s.addPod("other", "m1", 2)
		}, pool, "node n2 alone need 2 devices (replicaset/team/serve), and other nodes that admit them have room for pods with none of these: while such a node is closed pods with about 2 devices wait"},
		{"no pod has a device", Migrate, prepared, func(s *state) { full(s); s.Pods = s.Pods[:3] }, nil, ""},
	})
}
