package checks

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func taint(node, key string) func(*state) {
	return func(s *state) {
		s.node(node).Spec.Taints = append(s.node(node).Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

func TestDRM015(t *testing.T) {
	t.Parallel()
	plugin, drv := "blocker daemonset/kube-system/plugin", "blocker daemonset/kube-system/driver"
	try(t, "DRM015", []given{
		{"nothing was prepared", Migrate, untouched, nil, []string{plugin, "blocker driver/gpu.nvidia.com"}, "would stay on nodes"},
		{"the plugin does not heed the label", Migrate, prepared, func(s *state) { s.daemonSet("plugin").Spec.Template.Spec.Affinity = nil }, []string{plugin}, ""},
		{"one of its terms does not", Migrate, prepared, func(s *state) {
			sel := s.daemonSet("plugin").Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			sel.NodeSelectorTerms = append(sel.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpExists},
			}})
		}, []string{plugin}, ""},
		{"the driver runs anywhere", Migrate, prepared, func(s *state) { s.daemonSet("driver").Spec.Template.Spec.Affinity = nil }, []string{drv}, "not kept to nodes"},
		{"the driver's chart keeps it there", Migrate, prepared, func(s *state) {
			s.daemonSet("driver").Spec.Template.Spec.Affinity = nil
			s.daemonSet("driver").Spec.Template.Spec.NodeSelector = map[string]string{"dramigrate.dev/allocation": "dra"}
		}, nil, ""},
		{"a second plugin on the pool's nodes", Migrate, prepared, func(s *state) {
			s.addDaemonSet("mine", map[string]string{"k8s-app": "nvidia-gpu-device-plugin"}, "/var/lib/kubelet/device-plugins")
			s.runDaemon("mine", "n2")
		}, []string{"blocker daemonset/kube-system/mine"}, ""},
		{"an MPS daemon on the pool's nodes", Migrate, prepared, func(s *state) {
			ds := s.addDaemonSet("mps", map[string]string{"app.kubernetes.io/name": "nvidia-device-plugin"}, "")
			ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "mps-control-daemon-ctr"}}
		}, []string{"blocker daemonset/kube-system/mps"}, "mps-control-daemon would stay"},
	})
}

func TestDRM017(t *testing.T) {
	t.Parallel()
	n1 := []string{"blocker node/n1"}
	try(t, "DRM017", []given{
		{"a taint that the plugin does not tolerate", Rollback, migrated, taint("n1", "sku"), n1, "daemonset/kube-system/plugin: it does not tolerate the node's taint sku:NoSchedule"},
		{"a taint that it tolerates", Rollback, migrated, func(s *state) {
			taint("n1", "sku")(s)
			s.daemonSet("plugin").Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "sku", Operator: corev1.TolerationOpExists}}
		}, nil, ""},
		{"the tool's own taint will be gone", Rollback, migrated, taint("n1", "dramigrate.dev/switching"), nil, ""},
		{"a cordon does not keep it away", Rollback, migrated, taint("n1", "node.kubernetes.io/unschedulable"), nil, ""},
		{"a node selector that matches no more", Rollback, migrated, func(s *state) {
			s.daemonSet("plugin").Spec.Template.Spec.NodeSelector = map[string]string{"gpu": "yes"}
			s.node("n2").Labels["gpu"] = "yes"
		}, n1, "node selector"},
		{"no plugin is left", Rollback, migrated, func(s *state) {
			s.DaemonSets = s.DaemonSets[1:]
			s.stop("plugin", "m1")
		}, []string{"blocker pool/gpu"}, "is left"},
		{"a second plugin takes over", Rollback, migrated, func(s *state) {
			taint("n1", "sku")(s)
			ds := s.addDaemonSet("second", map[string]string{"k8s-app": "nvidia-gpu-device-plugin"}, "/var/lib/kubelet/device-plugins")
			ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, nil, ""},
		{"a node that is back already", Rollback, rolledBack, taint("n1", "sku"), nil, ""},
	})
}

func TestDRM022(t *testing.T) {
	t.Parallel()
	try(t, "DRM022", []given{
		{"a taint that the driver does not tolerate", Migrate, prepared, taint("n1", "sku"), []string{"blocker node/n1"}, "daemonset/kube-system/driver: it does not tolerate"},
		{"labels that nothing sets on the pool", Migrate, prepared, func(s *state) {
			s.daemonSet("driver").Spec.Template.Spec.NodeSelector = map[string]string{"feature.node.kubernetes.io/pci-0302_10de.present": "true"}
		}, []string{"blocker pool/gpu"}, "nodes n1, n2"},
		{"the label that is wanting is named", Migrate, prepared, func(s *state) {
			s.daemonSet("driver").Spec.Template.Spec.NodeSelector = map[string]string{"gpu-mode": "dra"}
			s.node("n1").Labels["gpu-mode"] = "dra"
		}, []string{"blocker node/n2"}, "does not match the node's labels"},
		{"a node of another pool", Migrate, prepared, taint("m1", "sku"), nil, ""},
		{"the tool's own taint is lifted for it", Migrate, prepared, taint("n1", "dramigrate.dev/switching"), nil, ""},
		{"no driver: prepare says so", Migrate, untouched, taint("n1", "sku"), nil, ""},
	})
}

// The remedy names the label that a node lacks, and each node's own.
func TestDRM022NamesLabels(t *testing.T) {
	t.Parallel()
	s := prepared()
	s.daemonSet("driver").Spec.Template.Spec.NodeSelector = map[string]string{"gpu-mode": "dra", "zone": "a"}
	s.node("n1").Labels["gpu-mode"] = "dra"
	want := map[string]string{
		"node/n1": "daemonset/kube-system/driver wants zone=a: label the nodes so, ",
		"node/n2": "daemonset/kube-system/driver wants gpu-mode=dra, zone=a: label the nodes so, ",
	}
	for _, f := range Only(s.of(Migrate), []string{"DRM022"}) {
		if start := want[f.Object]; start == "" || !strings.HasPrefix(f.Remedy, start) {
			t.Errorf("%s: remedy %q, want one that starts with %q", f.Object, f.Remedy, start)
		}
		delete(want, f.Object)
	}
	if len(want) > 0 {
		t.Errorf("no finding about %v", want)
	}
}

func TestDRM025(t *testing.T) {
	t.Parallel()
	unknown := func(s *state, name string) {
		s.daemonSet(name).Spec.Template.Labels = nil
	}
	second := func(s *state) {
		s.addDaemonSet("second", nil, "/var/lib/kubelet/device-plugins")
		for _, n := range []string{"m1", "n1", "n2"} {
			s.runDaemon("second", n)
		}
	}
	both := []string{"unknown daemonset/kube-system/plugin", "unknown daemonset/kube-system/second"}
	try(t, "DRM025", []given{
		{"two candidates", Prepare, untouched, func(s *state) { unknown(s, "plugin"); second(s) }, both, "mounts /var/lib/kubelet/device-plugins"},
		{"a person has decided for one of them", Migrate, prepared, func(s *state) { unknown(s, "plugin"); second(s) }, both[1:], ""},
		{"a known one beside it", Prepare, untouched, second, nil, ""},
		{"one candidate", Prepare, untouched, func(s *state) { unknown(s, "plugin") }, nil, ""},
	})
}

func TestDRM057(t *testing.T) {
	t.Parallel()
	bare := func(s *state) {
		for i := range s.Nodes {
			delete(s.Nodes[i].Status.Capacity, gpu)
			delete(s.Nodes[i].Status.Allocatable, gpu)
		}
	}
	amd := func(s *state) {
		bare(s)
		s.node("n1").Status.Capacity["amd.com/gpu"] = resource.MustParse("8")
	}
	try(t, "DRM057", []given{
		{"a pool with GPUs", Migrate, prepared, nil, nil, ""},
		{"a pool that has moved", Migrate, migrated, nil, nil, ""},
		{"a pool without", Migrate, prepared, bare, []string{"warning pool/gpu"}, "no node has, or had, nvidia.com/gpu"},
		{"a cluster without", Prepare, untouched, bare, []string{"warning nodes"}, ""},
		{"GPUs of another vendor", Migrate, prepared, amd, []string{"warning pool/gpu"}, "nodes have amd.com/gpu"},
	})
	// Of such a pool nothing else is said that would have somebody label its nodes.
	s := prepared()
	bare(s)
	for _, code := range []string{"DRM022", "DRM088", "DRM150"} {
		if found := Only(s.of(Migrate), []string{code}); len(found) > 0 {
			t.Errorf("a pool without GPUs: %+v", found)
		}
	}
}
