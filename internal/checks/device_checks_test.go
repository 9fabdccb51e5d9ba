package checks

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/gate"
)

// silent takes what a node advertises away; capacity goes as well, as after the
// kubelet's grace.
func silent(node string) func(*state) {
	return func(s *state) {
		s.node(node).Status.Capacity, s.node(node).Status.Allocatable = nil, nil
		delete(s.node(node).Labels, gfdCount)
	}
}

func TestDRM026(t *testing.T) {
	t.Parallel()
	with := func(changes ...func(*state)) func(*state) {
		return func(s *state) {
			for _, c := range changes {
				c(s)
			}
		}
	}
	n1 := []string{"warning node/n1"}
	try(t, "DRM026", []given{
		{"feature discovery counted them", Migrate, prepared, with(silent("n1"), label("n1", gfdCount, "2")), n1, "label nvidia.com/gpu.count=2, but advertises no nvidia.com/gpu"},
		{"the operator pauses the plugin", Migrate, prepared, with(silent("n1"), label("n1", "nvidia.com/gpu.present", "true"), label("n1", pluginSwitch, "paused-for-driver-upgrade")), n1, "paused-for-driver-upgrade"},
		{"the operator pauses a plugin of another value", Migrate, prepared, with(silent("n1"), label("n1", pluginSwitch, "x_paused-for-driver-upgrade")), n1, "at work"},
		{"present", Migrate, prepared, with(silent("n1"), label("n1", "nvidia.com/gpu.present", "true")), n1, "nvidia.com/gpu.present=true"},
		{"not present", Migrate, prepared, with(silent("n1"), label("n1", "nvidia.com/gpu.present", "false")), nil, ""},
		{"GKE's label", Migrate, prepared, with(silent("n1"), label("n1", gkeAccelerator, "nvidia-l4")), n1, "gke-accelerator=nvidia-l4"},
		{"GKE's label of a TPU", Migrate, prepared, with(silent("n1"), label("n1", gkeAccelerator, "tpu-v5-lite-podslice")), nil, ""},
		{"nothing tells of any", Migrate, prepared, silent("n1"), nil, ""},
		{"the plugin has only just started", Migrate, prepared, func(s *state) { s.node("n1").Status.Allocatable = nil }, n1, "has 2 of nvidia.com/gpu and none of them allocatable, though"},
		{"the plugin is not ready", Migrate, prepared, func(s *state) {
			s.node("n1").Status.Allocatable = nil
			s.pod("plugin-n1").Ready = false
		}, []string{"blocker node/n1"}, "no plugin's pod is ready"},
		{"the plugin is gone", Migrate, prepared, func(s *state) {
			s.node("n1").Status.Allocatable = nil
			s.stop("plugin", "n1")
		}, []string{"blocker node/n1"}, "no plugin's pod is ready"},
		{"another resource of the plugin is there", Migrate, prepared, with(silent("n1"), label("n1", gfdCount, "2"), func(s *state) {
			s.node("n1").Status.Capacity, s.node("n1").Status.Allocatable = corev1.ResourceList{}, corev1.ResourceList{}
		}, has("n1", "nvidia.com/mig-1g.5gb", "7")), nil, ""},
		{"a run has begun with it", Migrate, prepared, with(func(s *state) { s.node("n1").Status.Allocatable = nil }, func(s *state) { s.mark("n1", "gpu", false) }), nil, ""},
		{"it is switched", Migrate, prepared, with(func(s *state) { s.node("n1").Status.Allocatable = nil }, label("n1", gate.AllocationLabel, "switching")), nil, ""},
		{"the driver publishes them", Migrate, prepared, with(silent("n1"), label("n1", gfdCount, "2"), func(s *state) { s.Slices = append(s.Slices, nodeSlice("n1", driver, "gpu-0")) }), nil, ""},
		{"a node of another pool", Migrate, prepared, with(silent("m1"), label("m1", gfdCount, "2")), nil, ""},
	})
}

func TestDRM027(t *testing.T) {
	t.Parallel()
	containers := func(names ...string) func(*state) {
		return func(s *state) {
			for _, n := range names {
				t := &s.daemonSet("driver").Spec.Template.Spec
				t.Containers = append(t.Containers, corev1.Container{Name: n})
			}
		}
	}
	nameless := func(s *state) {
		s.Slices = append(s.Slices, nodeSlice("m1", driver, "gpu-0"))
		delete(s.Slices[0].Spec.Devices[0].Attributes, "uuid")
	}
	try(t, "DRM027", []given{
		{"ComputeDomains alone", Migrate, prepared, containers("compute-domains"), []string{"blocker daemonset/kube-system/driver"}, "do not serve gpu.nvidia.com"},
		{"ComputeDomains alone, before prepare", Prepare, prepared, containers("compute-domains"), []string{"blocker daemonset/kube-system/driver"}, ""},
		{"GPUs alone", Migrate, prepared, containers("gpus"), nil, ""},
		{"both", Migrate, prepared, containers("compute-domains", "gpus"), nil, ""},
		{"containers of other names tell nothing", Migrate, prepared, containers("plugin"), nil, ""},
		{"devices without UUID", Migrate, prepared, nameless, []string{"blocker driver/gpu.nvidia.com"}, "device gpu-0 of pool m1 has no attribute uuid"},
		{"devices of others without UUID", Migrate, prepared, func(s *state) {
			nameless(s)
			s.Slices[0].Spec.Driver = "net.example"
		}, nil, ""},
		{"the way back needs none", Rollback, migrated, nameless, nil, ""},
	})
}
