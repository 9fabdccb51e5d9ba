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

// A node is closed by node.kubernetes.io/unschedulable and dramigrate.dev/switching, both
// NoSchedule (cilium/cilium#28549 shows what comes of a toleration of all).
func TestDRM096(t *testing.T) {
	t.Parallel()
	everything := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	key := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	}
	with := func(tolerations ...corev1.Toleration) func(*state) {
		return func(s *state) { s.pod("train").Placement = &cluster.Placement{Tolerations: tolerations} }
	}
	owner := func(kind string) func(*state) { return func(s *state) { s.pod("train").Owner.Kind = kind } }
	template := func(change func(*cluster.Workload)) func(*state) {
		return func(s *state) {
			w := s.workload("serve", gpu, 1)
			w.Template.Placement, w.Replicas = &cluster.Placement{Tolerations: everything}, 2
			change(w)
		}
	}
	pinned := func(w *cluster.Workload) {
		w.Template.NodeLabels = needs("karpenter.sh/nodepool", "other")
		w.Template.Placement.NodeSelector = map[string]string{"karpenter.sh/nodepool": "other"}
	}
	train := []string{"warning replicaset/team/train"}
	serve := []string{"warning deployment/team/serve"}
	try(t, "DRM096", []given{
		{"no tolerations", Migrate, prepared, nil, nil, ""},
		{"every taint", Migrate, prepared, with(everything...), train, "pod train on node n1: tolerates both node.kubernetes.io/unschedulable and dramigrate.dev/switching, by which a node is closed"},
		{"both by their keys", Migrate, prepared, with(key("node.kubernetes.io/unschedulable"), key("dramigrate.dev/switching")), train, ""},
		{"every taint of one effect", Migrate, prepared, with(key("")), train, ""},
		{"the cordon alone", Migrate, prepared, with(key("node.kubernetes.io/unschedulable")), nil, ""},
		{"the tool's taint alone", Migrate, prepared, with(key("dramigrate.dev/switching")), nil, ""},
		{"every taint of another effect", Migrate, prepared, with(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}), nil, ""},
		{"on the way back", Rollback, migrated, with(everything...), train, ""},
		{"before prepare nothing is drained", Prepare, prepared, with(everything...), nil, ""},
		{"two pods of one owner", Migrate, prepared, both(with(everything...), func(s *state) {
			p := *s.pod("train")
			p.Name, p.UID, p.Node = "train-2", "train-2", "n2"
			s.Pods = append(s.Pods, p)
		}), train, "2 pods on nodes n1, n2: "},
		{"of another pool", Migrate, prepared, both(with(everything...), func(s *state) { s.pod("train").Node = "m1" }), nil, ""},
		{"without a device", Migrate, prepared, both(with(everything...), func(s *state) { s.pod("train").Requests = nil }), nil, ""},
		{"a DaemonSet's is DRM007's", Migrate, prepared, both(with(everything...), owner("DaemonSet")), nil, ""},
		{"nothing makes it again", Migrate, prepared, both(with(everything...), func(s *state) { s.pod("train").Owner = cluster.Owner{} }), nil, ""},
		{"waits for a node", Migrate, prepared, both(with(everything...), func(s *state) { s.pod("train").Node = "" }), train, "pod train: tolerates both"},
		{"a template without pods here", Migrate, prepared, template(func(*cluster.Workload) {}), serve, "its pods tolerate both"},
		{"a template of other nodes", Migrate, prepared, template(pinned), nil, ""},
		{"a template that no node of the pool would have", Migrate, prepared, both(
			template(func(w *cluster.Workload) {
				w.Template.Placement.Tolerations = []corev1.Toleration{key("node.kubernetes.io/unschedulable"), key("dramigrate.dev/switching")}
			}), both(taint("n1", "team"), taint("n2", "team"))), nil, ""},
		{"a template that is scaled to zero", Migrate, prepared, template(func(w *cluster.Workload) { w.Replicas = 0 }), []string{"info deployment/team/serve"}, "makes no pods now"},
		{"a template that is suspended", Migrate, prepared, template(func(w *cluster.Workload) { w.Kind, w.Suspended = cluster.KindCronJob, true }), []string{"info cronjob/team/serve"}, ""},
		{"a Job that is over", Migrate, prepared, template(func(w *cluster.Workload) { w.Kind, w.Finished = cluster.KindJob, true }), nil, ""},
	})
	for kind, want := range map[string]string{
		"ReplicaSet":  "`kubectl scale replicaset train -n team --replicas=0`",
		"StatefulSet": "`kubectl scale statefulset train -n team --replicas=0`",
		"Job":         "`kubectl patch job train -n team --type merge -p '{\"spec\":{\"suspend\":true}}'`",
		"RayCluster":  "`kubectl edit raycluster train -n team`",
	} {
		s := prepared()
		with(everything...)(s)
		owner(kind)(s)
		if got := remedies(Run(s.of(Migrate)), "DRM096"); !strings.Contains(got, want) {
			t.Errorf("%s: remedy %q, want one with %s", kind, got, want)
		}
	}
}
