package checks

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

const (
	deployPlugin    = "nvidia.com/gpu.deploy.device-plugin"
	deployValidator = "nvidia.com/gpu.deploy.operator-validator"
)

// byOperator gives the plugin to the GPU Operator, whose labels all nodes with GPUs
// have then.
func byOperator(s *state) {
	ds := s.daemonSet("plugin")
	ds.OwnerReferences = []metav1.OwnerReference{{APIVersion: "nvidia.com/v1", Kind: "ClusterPolicy", Name: "cluster-policy"}}
	ds.Spec.Template.Spec.Affinity = nil
	ds.Spec.Template.Spec.NodeSelector = map[string]string{deployPlugin: "true"}
	for _, n := range []string{"m1", "n1", "n2"} {
		s.node(n).Labels[deployPlugin], s.node(n).Labels[deployValidator] = "true", "true"
		if s.node(n).Labels["dramigrate.dev/allocation"] != "" {
			s.node(n).Labels[deployPlugin], s.node(n).Labels[deployValidator] = "false", "false"
		}
	}
}

// both does one change after another.
func both(changes ...func(*state)) func(*state) {
	return func(s *state) {
		for _, c := range changes {
			c(s)
		}
	}
}

func TestDRM029OfAVendorsSwitch(t *testing.T) {
	t.Parallel()
	gone := func(s *state) { delete(s.node("n1").Labels, deployPlugin) }
	try(t, "DRM029", []given{
		{"as the operator has it", Migrate, prepared, byOperator, nil, ""},
		{"no validator there", Migrate, prepared, both(byOperator, label("n1", deployValidator, "false")), nil, ""},
		{"empty: the operator makes it true one day", Migrate, prepared, both(byOperator, label("n1", deployPlugin, "")), []string{"unknown node/n1"}, "is empty"},
		{"absent, and the node has GPUs", Migrate, prepared, both(byOperator, gone), []string{"unknown node/n1"}, "is absent"},
		{"absent, and the node has none", Migrate, prepared, both(byOperator, gone, func(s *state) {
			s.node("n1").Labels = map[string]string{}
			s.node("n1").Status.Capacity, s.node("n1").Status.Allocatable = nil, nil
		}), nil, ""},
		{"off already, by somebody else", Migrate, prepared, both(byOperator, label("n1", deployPlugin, "false")), []string{"blocker node/n1"}, "keeps the plugin off"},
		{"the same on the way back: no run was here", Rollback, prepared, both(byOperator, label("n1", deployPlugin, "false")), nil, ""},
		{"turned on again under the driver", Migrate, migrated, both(byOperator, label("n1", deployPlugin, "true")), []string{"warning node/n1"}, "a run had left it as false"},
		{"the same on the way back", Rollback, migrated, both(byOperator, label("n1", deployPlugin, "true")), []string{"warning node/n1"}, ""},
	})
}

func TestDRM010OfAVendorsSwitch(t *testing.T) {
	t.Parallel()
	try(t, "DRM010", []given{
		{"the run sets the label again", Migrate, migrated, both(byOperator, label("n1", deployPlugin, "true"), has("n1", gpu, "2")), []string{"warning node/n1"}, ""},
		{"so does the way back", Rollback, migrated, both(byOperator, label("n1", deployPlugin, "true"), has("n1", gpu, "2")), []string{"warning node/n1"}, ""},
		{"the labels are as they have to be", Migrate, migrated, both(byOperator, has("n1", gpu, "2")), []string{"blocker node/n1"}, ""},
		{"no record", Migrate, migrated, both(byOperator, label("n1", deployPlugin, "true"), has("n1", gpu, "2"), func(s *state) {
			delete(s.node("n1").Annotations, "dramigrate.dev/state")
		}), []string{"blocker node/n1"}, ""},
	})
}

func TestDRM060(t *testing.T) {
	t.Parallel()
	paused := label("n1", deployPlugin, "paused-for-driver-upgrade")
	try(t, "DRM060", []given{
		{"nobody is at work", Migrate, prepared, byOperator, nil, ""},
		{"the driver is being reloaded", Migrate, prepared, both(byOperator, paused), []string{"blocker node/n1"}, "paused-for-driver-upgrade"},
		{"a value of its own, paused", Rollback, prepared, both(byOperator, label("n1", deployValidator, "x_paused-for-driver-upgrade")), []string{"blocker node/n1"}, ""},
		{"on another pool", Migrate, prepared, both(byOperator, label("m1", deployPlugin, "paused-for-driver-upgrade")), nil, ""},
		{"a label that is not of the gate", Migrate, prepared, paused, nil, ""},
	})
}

func TestDRM061(t *testing.T) {
	t.Parallel()
	second := func(s *state) {
		s.addDaemonSet("second", map[string]string{"name": "nvidia-device-plugin-ds"}, "/var/lib/kubelet/device-plugins")
		s.runDaemon("second", "n2")
	}
	try(t, "DRM061", []given{
		{"one DaemonSet", Migrate, prepared, nil, nil, ""},
		{"the operator's and one of nobody's", Migrate, prepared, both(byOperator, second), []string{"blocker pool/gpu"}, "gpu-operator (daemonset/kube-system/plugin), own-key (daemonset/kube-system/second)"},
		{"moved by another gate before", Migrate, migrated, both(byOperator, recordGate("n1", "own-key")), []string{"blocker pool/gpu"}, "the record of node n1"},
		{"the way back goes by the record", Rollback, migrated, both(byOperator, recordGate("n1", "own-key")), nil, ""},
		{"two gates in the records", Rollback, migrated, both(recordGate("n1", "own-key"), recordGate("n2", "gke")), []string{"blocker pool/gpu"}, ""},
	})
}

// recordGate has the node's record name a gate.
func recordGate(node, name string) func(*state) {
	return func(s *state) {
		st, err := cluster.ParseNodeState(s.node(node))
		if err != nil {
			panic(err)
		}
		st.Gate = name
		raw, err := st.Encode()
		if err != nil {
			panic(err)
		}
		s.node(node).Annotations["dramigrate.dev/state"] = raw
	}
}
