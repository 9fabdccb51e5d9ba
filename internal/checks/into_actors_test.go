package checks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// TestActorsOnBothPools asks what else acts on the nodes of a move from pool gpu (n1, n2)
// into pool other (m1): both are closed and opened or left by the run.
func TestActorsOnBothPools(t *testing.T) {
	t.Parallel()
	const upgrade, paused, machines = "nvidia.com/gpu-driver-upgrade-state", "nvidia.com/gpu.deploy.dcgm", "machineconfiguration.openshift.io/state"
	condition := func(node, kind string, status corev1.ConditionStatus) func(*state) {
		return func(s *state) {
			n := s.node(node)
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status})
		}
	}
	kured := func(s *state) {
		ds := s.addDaemonSet("kured", nil, "")
		ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "kured", Image: "ghcr.io/kubereboot/kured:1.20.0"}}
	}
	reboots := func(node string) func(*state) {
		return all(kured, annotate(node, "weave.works/kured-reboot-in-progress", "2026-09-01T00:00:00Z"))
	}
	auto := operators(cluster.OperatorObject{Kind: "ClusterPolicy", Name: "p", AutoUpgrade: new(true)})
	scaler := controller("registry.k8s.io/autoscaling/cluster-autoscaler:v1.37.0")
	karpenter := func(node string) func(*state) { return label(node, "karpenter.sh/registered", "true") }
	sees := func(node string) func(*state) {
		return func(s *state) { s.addPod("peek", node, 0).VisibleDevices = "all" }
	}
	nfd := func(s *state) {
		ds := s.addDaemonSet("nfd", nil, "")
		ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "worker", Image: "registry.k8s.io/nfd/node-feature-discovery:v0.18.3"}}
		s.node("m1").Spec.Taints = []corev1.Taint{{Key: "sku", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	}
	moved := func(s *state) {
		s.role("n1", cluster.RoleOld, Migrate, true)
		s.role("m1", cluster.RoleNew, Migrate, true)
	}
	for _, c := range []struct {
		title, operation string
		change           func(*state)
		code             string
		want             []string
		says             string // of every finding
	}{
		{"a GPUCluster", Migrate, operators(cluster.OperatorObject{Kind: "GPUCluster", Name: "g"}), "DRM080", []string{"blocker gpucluster/g"}, "on every GPU node"},

		{"driver upgrade of an old node", Migrate, label("n1", upgrade, "drain-required"), "DRM081", []string{"blocker node/n1"}, "at the end uncordons it"},
		{"driver upgrade of a new node", Migrate, label("m1", upgrade, "drain-required"), "DRM081", []string{"blocker node/m1"}, ""},
		{"driver upgrade of an old node, back", Rollback, all(moved, label("n1", upgrade, "drain-required")), "DRM081", []string{"warning node/n1"}, ""},
		{"driver upgrade of a new node, back", Rollback, all(moved, label("m1", upgrade, "drain-required")), "DRM081", []string{"warning node/m1"}, ""},
		{"upgrades by themselves", Migrate, auto, "DRM082", []string{"info clusterpolicy/p", "info clusterpolicy/p"}, "nothing keeps it off node"},
		{"upgrades by themselves, back", Rollback, all(moved, auto), "DRM082", []string{"info clusterpolicy/p", "info clusterpolicy/p"}, ""},
		{"a driver manager that evicts by label", Migrate, operators(cluster.OperatorObject{Kind: "NVIDIADriver", Name: "d", EvictionNodeLabel: "x"}), "DRM083", []string{"warning nvidiadriver/d"}, ""},
		{"no operands on a new node", Migrate, label("m1", "nvidia.com/gpu.deploy.operands", "false"), "DRM084", []string{"warning node/m1"}, ""},
		{"no operands on an old node", Migrate, label("n1", "nvidia.com/gpu.deploy.operands", "false"), "DRM084", nil, ""},
		{"driver reload on an old node", Migrate, label("n1", paused, "paused-for-driver-upgrade"), "DRM085", []string{"blocker node/n1"}, ""},
		{"driver reload on a new node", Migrate, label("m1", paused, "paused-for-driver-upgrade"), "DRM085", []string{"blocker node/m1"}, ""},
		{"driver reload, back", Rollback, all(moved, label("n1", paused, "paused-for-driver-upgrade"), label("m1", paused, "paused-for-driver-upgrade")),
			"DRM085", []string{"warning node/m1", "warning node/n1"}, ""},

		{"Cluster Autoscaler", Migrate, scaler, "DRM086", []string{"warning pod/team/controller", "warning pod/team/controller"}, "of pool "},
		{"Cluster Autoscaler, back", Rollback, all(moved, scaler), "DRM086", []string{"warning pod/team/controller", "warning pod/team/controller"}, "of pool "},
		{"AKS scales the new pool out of sight", Migrate, label("m1", "kubernetes.azure.com/agentpool", "g"), "DRM086", []string{"info nodegroup/g"}, "may remove them before the pods come"},
		{"AKS scales the old pool out of sight", Migrate, label("n1", "kubernetes.azure.com/agentpool", "g"), "DRM086", []string{"info nodegroup/g"}, "may add others to it for pods that wait"},
		{"Karpenter makes the old pool", Migrate, karpenter("n1"), "DRM087", []string{"warning pool/gpu"}, "the pods go there again"},
		{"Karpenter makes the new pool", Migrate, all(karpenter("m1"), label("m1", "karpenter.sh/initialized", "true")), "DRM087", []string{"warning pool/other"}, "never initialized"},
		{"a new node that Karpenter does not count", Migrate, karpenter("m1"), "DRM087", []string{"warning node/m1", "warning pool/other"}, ""},
		{"Karpenter, back", Rollback, all(moved, karpenter("n1"), karpenter("m1")), "DRM087", []string{"warning pool/gpu", "warning pool/other"}, "1 node is Karpenter's"},

		{"kured reboots an old node", Migrate, reboots("n1"), "DRM089", []string{"blocker node/n1", "info daemonset/kube-system/kured"}, ""},
		{"kured reboots a new node", Migrate, reboots("m1"), "DRM089", []string{"blocker node/m1", "info daemonset/kube-system/kured"}, ""},
		{"kured, back", Rollback, all(moved, reboots("m1")), "DRM089", []string{"warning node/m1", "info daemonset/kube-system/kured"}, ""},
		{"an old node may be repaired", Migrate, condition("n1", "AcceleratedHardwareReady", corev1.ConditionFalse), "DRM090", []string{"warning node/n1"}, "automatic repair"},
		{"a new node may be repaired", Migrate, condition("m1", "AcceleratedHardwareReady", corev1.ConditionFalse), "DRM090", []string{"warning node/m1"}, "automatic repair"},
		{"a new node's plugin is watched", Migrate, condition("m1", "UnhealthyNvidiaDevicePlugin", corev1.ConditionFalse), "DRM090", []string{"warning node/m1"}, "does not run on the node"},
		{"an old node's plugin is watched", Migrate, condition("n1", "UnhealthyNvidiaDevicePlugin", corev1.ConditionFalse), "DRM090", nil, ""},
		{"a repair, back", Rollback, all(moved, condition("n1", "AcceleratedHardwareReady", corev1.ConditionFalse), condition("m1", "AcceleratedHardwareReady", corev1.ConditionFalse)),
			"DRM090", []string{"warning node/m1", "warning node/n1"}, ""},
		{"a machine config for an old node", Migrate, annotate("n1", machines, "Working"), "DRM091", []string{"blocker node/n1"}, ""},
		{"a machine config for a new node", Migrate, annotate("m1", machines, "Working"), "DRM091", []string{"blocker node/m1"}, ""},
		{"machine configs, back", Rollback, all(moved, annotate("n1", machines, "Working"), annotate("m1", machines, "Working")), "DRM091", []string{"warning node/m1", "warning node/n1"}, ""},
		{"Feature Discovery does not come to a new node", Migrate, nfd, "DRM092", []string{"warning node/m1"}, "does not come to it"},

		{"a pod of an old node sees GPUs beside the plugin", Migrate, sees("n1"), "DRM044", []string{"warning replicaset/team/peek"}, "without a request"},
		{"a pod of a new node sees GPUs beside the driver", Migrate, sees("m1"), "DRM044", []string{"warning replicaset/team/peek"}, "without a request"},
		{"the driver cannot start on a new node", Migrate, func(s *state) { s.pod("driver-m1").Ready, s.pod("driver-m1").Waiting = false, "ImagePullBackOff" },
			"DRM064", []string{"blocker daemonset/kube-system/driver"}, "ImagePullBackOff"},
		{"the driver is down on a new node, back", Rollback, all(moved, func(s *state) { s.pod("driver-m1").Ready, s.pod("driver-m1").Waiting = false, "CrashLoopBackOff" }),
			"DRM064", []string{"warning daemonset/kube-system/driver"}, ""},
		{"the helper's image has no version", Migrate, func(s *state) { s.in.HelperImage = "registry.example.com/dramigrate" }, "DRM078", []string{"warning image/registry.example.com/dramigrate"}, "latest"},
		{"the helper's image has no version, back", Rollback, all(moved, func(s *state) { s.in.HelperImage = "registry.example.com/dramigrate" }), "DRM078", []string{"warning image/registry.example.com/dramigrate"}, ""},
		{"nothing is known of the driver", Migrate, func(s *state) { s.in.Driver = "gpu.example.com" }, "DRM079", []string{"warning driver/gpu.example.com"}, "no program is known"},
	} {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			s := twoPools()
			c.change(s)
			findings := ofBoth(s, c.operation)
			if diff := cmp.Diff(c.want, brief(findings, c.code)); diff != "" {
				t.Errorf("findings of %s (-want +got):\n%s", c.code, diff)
			}
			for _, f := range findings {
				if f.Code != c.code {
					continue
				}
				if !strings.Contains(f.Message, c.says) {
					t.Errorf("message %q, want one with %q", f.Message, c.says)
				}
				if f.Remedy == "" {
					t.Errorf("%s: no remedy", f.Object)
				}
				pasteable(t, f)
			}
		})
	}
}
