package checks

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func label(node, key, value string) func(*state) {
	return func(s *state) { s.node(node).Labels[key] = value }
}

func has(node, resourceName, count string) func(*state) {
	return func(s *state) {
		s.node(node).Status.Capacity[corev1.ResourceName(resourceName)] = resource.MustParse(count)
		s.node(node).Status.Allocatable[corev1.ResourceName(resourceName)] = resource.MustParse(count)
	}
}

func TestDRM008(t *testing.T) {
	t.Parallel()
	n1 := []string{"blocker node/n1"}
	unlabelled := func(resource, driver string) func(*state) {
		return func(s *state) {
			s.in.Resource, s.in.Driver = resource, driver
			has("n1", resource, "2")(s)
			delete(s.node("n1").Labels, "nvidia.com/gpu.count")
		}
	}
	try(t, "DRM008", []given{
		{"a renamed resource", Migrate, prepared, has("n1", "nvidia.com/gpu.shared", "8"), n1, "8 of nvidia.com/gpu.shared"},
		{"a renamed resource of old", Migrate, prepared, has("n1", "nvidia.com/gpu.shared", "0"), nil, ""},
		{"replicas by label", Migrate, prepared, label("n1", "nvidia.com/gpu.replicas", "4"), n1, "nvidia.com/gpu.replicas=4"},
		{"one replica", Migrate, prepared, label("n1", "nvidia.com/gpu.replicas", "1"), nil, ""},
		{"a strategy", Migrate, prepared, label("n1", "nvidia.com/gpu.sharing-strategy", "mps"), n1, "sharing-strategy=mps"},
		{"no strategy", Migrate, prepared, label("n1", "nvidia.com/gpu.sharing-strategy", "none"), nil, ""},
		{"a product's name", Migrate, prepared, label("n1", "nvidia.com/gpu.product", "Tesla-T4-SHARED"), n1, "Tesla-T4-SHARED"},
		{"more advertised than there are", Migrate, prepared, has("n1", gpu, "16"), n1, "advertises 16 of nvidia.com/gpu, but label nvidia.com/gpu.count=2"},
		{"fewer advertised than there are", Migrate, prepared, has("n1", gpu, "1"), nil, ""},
		{"GKE's time-sharing", Migrate, prepared, label("n1", "cloud.google.com/gke-gpu-sharing-strategy", "time-sharing"), n1, "gke-gpu-sharing-strategy=time-sharing"},
		{"GKE's clients of one GPU", Migrate, prepared, label("n1", "cloud.google.com/gke-max-shared-clients-per-gpu", "4"), n1, "gke-max-shared-clients-per-gpu=4"},
		{"another pool shares", Migrate, prepared, label("m1", "nvidia.com/gpu.replicas", "4"), nil, ""},
		{"nothing tells", Migrate, prepared, func(s *state) { delete(s.node("n1").Labels, "nvidia.com/gpu.count") }, []string{"info node/n1"}, "no label tells"},
		{"nothing can tell: AMD has no such label", Migrate, prepared, unlabelled("amd.com/gpu", "gpu.amd.com"), nil, ""},
		{"nothing can tell: TPUs", Migrate, prepared, unlabelled("google.com/tpu", "tpu.google.com"), nil, ""},
		{"nothing can tell: Gaudi", Migrate, prepared, unlabelled("habana.ai/gaudi", "gaudi.intel.com"), nil, ""},
		{"nothing can tell: Intel's GPUs", Migrate, prepared, unlabelled("gpu.intel.com/i915", "gpu.intel.com"), nil, ""},
		{"nothing can tell: a vendor of which nothing is known", Migrate, prepared, unlabelled("example.com/gpu", "gpu.example.com"), nil, ""},
		{"a node without GPUs tells nothing", Migrate, prepared, func(s *state) {
			delete(s.node("n1").Labels, "nvidia.com/gpu.count")
			s.node("n1").Status.Capacity, s.node("n1").Status.Allocatable = nil, nil
		}, nil, ""},
	})
}

func unlabel(node, key string) func(*state) {
	return func(s *state) { delete(s.node(node).Labels, key) }
}

func TestDRM009(t *testing.T) {
	t.Parallel()
	n1 := []string{"blocker node/n1"}
	try(t, "DRM009", []given{
		{"a profile's resource", Migrate, prepared, has("n1", "nvidia.com/mig-1g.5gb", "7"), n1, "7 of nvidia.com/mig-1g.5gb"},
		{"a profile's resource of old", Migrate, prepared, has("n1", "nvidia.com/mig-1g.5gb", "0"), nil, ""},
		{"strategy single: the product's name", Migrate, prepared, label("n1", "nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"), n1, "MIG-1g.5gb"},
		{"the strategy alone", Migrate, prepared, label("n1", "nvidia.com/mig.strategy", "single"), nil, ""},
		{"a layout that is asked for", Migrate, prepared, label("n1", "nvidia.com/mig.config", "all-1g.5gb"), n1, "mig.config=all-1g.5gb"},
		{"no layout", Migrate, prepared, label("n1", "nvidia.com/mig.config", "all-disabled"), nil, ""},
		{"GKE's partitions", Migrate, prepared, label("n1", "cloud.google.com/gke-gpu-partition-size", "1g.5gb"), n1, "gke-gpu-partition-size=1g.5gb"},
		{"MIG Manager is at work", Migrate, prepared, label("n1", "nvidia.com/mig.config.state", "pending"), n1, "mig.config.state=pending"},
		{"MIG Manager restarts the node", Migrate, prepared, label("n1", "nvidia.com/mig.config.state", "rebooting"), n1, "mig.config.state=rebooting"},
		{"MIG Manager failed, although no layout is asked for", Migrate, prepared, all(label("n1", "nvidia.com/mig.config", "all-disabled"), label("n1", "nvidia.com/mig.config.state", "failed")), n1, "mig.config.state=failed"},
		{"MIG Manager says what is new", Migrate, prepared, label("n1", "nvidia.com/mig.config.state", "waiting"), n1, "mig.config.state=waiting"},
		{"MIG Manager is done", Migrate, prepared, label("n1", "nvidia.com/mig.config.state", "success"), nil, ""},
		{"another pool is partitioned", Migrate, prepared, has("m1", "nvidia.com/mig-1g.5gb", "7"), nil, ""},
		{"nobody labels the node", Migrate, prepared, unlabel("n1", gfdCount), []string{"info node/n1"}, "no label tells whether the GPUs are partitioned"},
		{"GKE would have labelled it", Migrate, prepared, both(unlabel("n1", gfdCount), label("n1", gkeNodePool, "gpu")), nil, ""},
		{"a node without GPUs", Migrate, prepared, both(unlabel("n1", gfdCount), func(s *state) { s.node("n1").Status.Capacity = nil }), nil, ""},
	})
}

func TestDRM010(t *testing.T) {
	t.Parallel()
	publish := func(node, driverName string, devices ...string) func(*state) {
		return func(s *state) { s.Slices = append(s.Slices, nodeSlice(node, driverName, devices...)) }
	}
	try(t, "DRM010", []given{
		{"both on a node of the pool", Migrate, prepared, publish("n1", driver, "gpu-0", "gpu-1"), []string{"blocker node/n1"},
			"2 of nvidia.com/gpu are allocatable by the plugin while gpu.nvidia.com publishes 2 devices"},
		{"both, by a plugin that somebody started by hand", Migrate, prepared, func(s *state) {
			publish("n1", driver, "gpu-0")(s)
			s.addPod("debug", "n1", 0).HostPaths = []string{"/var/lib/kubelet/device-plugins/"}
		}, []string{"blocker node/n1"}, "pod/team/debug, of no DaemonSet,"},
		{"without a plugin: the kubelet's update was lost", Migrate, migrated, has("n1", gpu, "2"), []string{"blocker node/n1"},
			"2 of nvidia.com/gpu are allocatable, and no plugin is there that serves them, while"},
		{"the same, while a run has it closed", Migrate, migrated, all(has("n1", gpu, "2"), taint("n1", "dramigrate.dev/switching")), []string{"warning node/n1"}, "no plugin is there that serves them"},
		{"the plugin's pod is there", Migrate, migrated, func(s *state) {
			has("n1", gpu, "2")(s)
			s.runDaemon("plugin", "n1")
		}, []string{"blocker node/n1"}, "allocatable by the plugin while"},
		{"whether a plugin is there cannot be known", Migrate, migrated, all(has("n1", gpu, "2"), unread(cluster.PartPods)), []string{"blocker node/n1"}, "allocatable by the plugin while"},
		{"both, before prepare", Prepare, untouched, publish("n1", driver, "gpu-0"), []string{"blocker node/n1"}, ""},
		{"both, by another resource of the plugin", Rollback, migrated, func(s *state) {
			has("n2", "nvidia.com/gpu.shared", "4")(s)
			s.runDaemon("plugin", "n2")
		}, []string{"blocker node/n2"}, "4 of nvidia.com/gpu.shared"},
		{"both, on the way back", Rollback, migrated, has("n2", gpu, "2"), []string{"blocker node/n2"}, ""},
		{"both on a node that is closed", Migrate, prepared, func(s *state) {
			publish("n1", driver, "gpu-0")(s)
			s.node("n1").Spec.Taints = []corev1.Taint{gate.SwitchingTaint()}
		}, []string{"warning node/n1"}, ""},
		{"both on a node of another pool", Migrate, prepared, publish("m1", driver, "gpu-0"), []string{"warning node/m1"}, ""},
		{"compute domains beside the plugin are fine", Migrate, prepared, publish("n1", "compute-domain.nvidia.com", "channel-0"), nil, ""},
		{"a slice without devices", Migrate, prepared, publish("n1", driver), nil, ""},
		{"slices of a node that is gone", Migrate, prepared, publish("gone", driver, "gpu-0"), nil, ""},
		{"the driver alone", Rollback, migrated, nil, nil, ""},
	})
}

func TestDRM012(t *testing.T) {
	t.Parallel()
	try(t, "DRM012", []given{
		{"another pool's", Migrate, prepared, func(s *state) { s.mark("n1", "blue", false) }, []string{"blocker node/n1"}, "part of pool blue (selector karpenter.sh/nodepool=blue)"},
		{"another pool's, on the way back", Rollback, migrated, func(s *state) { s.mark("n1", "blue", true) }, []string{"blocker node/n1"}, ""},
		{"its own", Migrate, prepared, func(s *state) { s.mark("n1", "gpu", false) }, nil, ""},
		{"cannot be read", Migrate, prepared, func(s *state) { s.node("n1").Annotations["dramigrate.dev/state"] = "{" }, []string{"unknown node/n1"}, "cannot be read"},
		{"a node of another pool", Migrate, prepared, func(s *state) { s.mark("m1", "other", false) }, nil, ""},
	})
}

func TestDRM013(t *testing.T) {
	t.Parallel()
	everywhere := func(s *state) {
		s.daemonSet("driver").Spec.Template.Spec.Affinity = nil
		for _, n := range []string{"m1", "n1"} {
			s.runDaemon("driver", n)
		}
	}
	try(t, "DRM013", []given{
		{"it serves compute domains on a plugin node", Prepare, prepared, func(s *state) {
			everywhere(s)
			s.Slices = append(s.Slices, nodeSlice("m1", "compute-domain.nvidia.com", "channel-0"))
			s.addPod("nvl", "m1", 1)
			s.claim("channel", "compute-domain.nvidia.com", "m1", "channel-0", "nvl")
		}, []string{"blocker daemonset/kube-system/driver", "warning daemonset/kube-system/driver"}, "leave node m1, where claims team/channel hold devices"},
		{"it runs but serves nothing", Prepare, prepared, everywhere, []string{"warning daemonset/kube-system/driver"}, "leaves nodes m1, n1"},
		{"a node that keeps it", Prepare, prepared, func(s *state) {
			everywhere(s)
			s.stop("driver", "m1")
			s.node("n1").Labels["dramigrate.dev/allocation"] = "dra"
		}, nil, ""},
		{"it is placed", Prepare, prepared, func(s *state) { s.runDaemon("driver", "n1") }, nil, ""},
	})
}

func TestDRM014(t *testing.T) {
	t.Parallel()
	with := func(expressions ...string) func(*state) {
		return func(s *state) {
			s.Classes = []resourcev1.DeviceClass{class("c", expressions...)}
			s.Slices = append(s.Slices, nodeSlice("m1", driver, "gpu-0"))
			s.stop("plugin", "m1")
			s.node("m1").Status.Allocatable = corev1.ResourceList{}
		}
	}
	c := []string{"blocker deviceclass/c"}
	try(t, "DRM014", []given{
		{"it selects them", Migrate, prepared, with(`device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`), nil, ""},
		{"another vendor's", Migrate, prepared, with(`device.driver == "hami-core-gpu.project-hami.io"`), c, "selects none of the devices"},
		{"another type", Migrate, prepared, with(`device.attributes["gpu.nvidia.com"].type == "mig"`), c, "selects none of the devices"},
		{"an attribute that they lack", Migrate, prepared, with(`device.attributes["gpu.nvidia.com"].model == "x"`), c, "fail on device gpu-0"},
		{"no expression", Migrate, prepared, with(`device.driver ==`), c, "selector 0"},
		{"before prepare", Prepare, untouched, with(`device.driver == "x"`), c, ""},
		{"others' devices as well", Migrate, prepared, func(s *state) {
			with()(s)
			s.Slices = append(s.Slices, nodeSlice("m1", "net.example", "nic-0"))
		}, c, "has no selector: it selects devices of net.example as well"},
		{"others' devices as well, and they are named", Migrate, prepared, func(s *state) {
			with(`device.driver in ["gpu.nvidia.com", "net.example"]`)(s)
			s.Slices = append(s.Slices, nodeSlice("m1", "net.example", "nic-0"))
		}, []string{"warning deviceclass/c"}, "selects devices of net.example as well"},
		{"constantly true, others publish nothing", Migrate, prepared, with(`true`), []string{"warning deviceclass/c"}, "the devices of every driver"},
		{"constantly true, others alone publish", Migrate, prepared, func(s *state) {
			s.Classes = []resourcev1.DeviceClass{class("c", `true`)}
			s.Slices = append(s.Slices, nodeSlice("m1", "net.example", "nic-0"))
		}, c, "selects devices of net.example as well"},
		{"it fails on a device of another pool", Verify, migrated, func(s *state) { // docs/truth.md, K1.1i and K1.1j
			s.Classes = []resourcev1.DeviceClass{class("c", ofGPUs)}
			s.Slices = append(s.Slices, nodeSlice("m1", driver, "gpu-7"))
			delete(s.Slices[len(s.Slices)-1].Spec.Devices[0].Attributes, "type")
			s.in.Pool = cluster.NodePool{Name: "gpu", Nodes: []string{"n1", "n2"}}
		}, c, "fail on device gpu-7 of pool m1"},
		{"it fails on a device of another driver", Migrate, migrated, func(s *state) {
			s.Classes = []resourcev1.DeviceClass{class("c", `device.attributes["gpu.nvidia.com"].type == "gpu"`)}
			s.Slices = append(s.Slices, nodeSlice("m1", "net.example", "nic-0"))
		}, c, "fail on device nic-0 of pool m1, driver net.example"},
		{"it fails on a device of another driver, alone", Migrate, prepared, func(s *state) {
			s.Classes = []resourcev1.DeviceClass{class("c", `device.attributes["gpu.nvidia.com"].type == "gpu"`)}
			s.Slices = append(s.Slices, nodeSlice("m1", "net.example", "nic-0"))
		}, c, "fail on device nic-0 of pool m1, driver net.example"},
		{"another pool publishes too", Migrate, migrated, func(s *state) {
			s.Classes = []resourcev1.DeviceClass{class("c", ofGPUs)}
			s.Slices = append(s.Slices, nodeSlice("m1", driver, "gpu-7"))
		}, nil, ""},
		{"nothing is published", Migrate, prepared, func(s *state) { s.Classes = []resourcev1.DeviceClass{class("c", `false`)} },
			[]string{"info deviceclass/c"}, "publishes no device yet"},
		{"only others publish", Migrate, prepared, func(s *state) {
			s.Classes = []resourcev1.DeviceClass{class("c", `false`)}
			s.Slices = append(s.Slices, nodeSlice("m1", "net.example", "nic-0"))
		}, []string{"info deviceclass/c"}, ""},
		{"no class", Migrate, prepared, nil, nil, ""},
	})
}

func ready(node string, status corev1.ConditionStatus, op string) given {
	g := given{name: op + ", ready is " + string(status), operation: op, from: prepared}
	if op == Rollback {
		g.from = migrated
	}
	g.change = func(s *state) {
		s.node(node).Status.Conditions = nil
		if status != "" {
			s.node(node).Status.Conditions = []corev1.NodeCondition{
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: status, Reason: "NodeStatusUnknown"},
			}
		}
	}
	return g
}

func TestDRM021(t *testing.T) {
	t.Parallel()
	expect := func(g given, want ...string) given { g.want = want; return g }
	try(t, "DRM021", []given{
		expect(ready("n1", corev1.ConditionTrue, Migrate)),
		expect(ready("n1", corev1.ConditionFalse, Migrate), "blocker node/n1"),
		expect(ready("n1", corev1.ConditionUnknown, Migrate), "blocker node/n1"),
		expect(ready("n1", "", Migrate), "unknown node/n1"),
		expect(ready("n1", corev1.ConditionUnknown, Rollback), "warning node/n1"),
		expect(ready("m1", corev1.ConditionFalse, Migrate)),
	})
}

func TestTargets(t *testing.T) {
	t.Parallel()
	names := func(s *state, op string) string {
		var out string
		in := s.of(op).indexed()
		for _, v := range in.targets() {
			out += v.Node.Name + " "
		}
		return out
	}
	half := migrated() // n2 was switched but not opened yet
	half.mark("n2", "gpu", false)
	back := migrated() // n1 is back, its annotation gone
	delete(back.node("n1").Labels, "dramigrate.dev/allocation")
	delete(back.node("n1").Annotations, "dramigrate.dev/state")
	returning := migrated() // n1 is in the middle of its rollback
	st := cluster.NodeState{Pool: "gpu", Operation: Rollback, Run: "r2"}
	raw, err := st.Encode()
	if err != nil {
		t.Fatal(err)
	}
	returning.node("n1").Annotations["dramigrate.dev/state"] = raw
	delete(returning.node("n1").Labels, "dramigrate.dev/allocation")
	for _, tt := range []struct {
		name      string
		state     *state
		operation string
		want      string
	}{
		{"all to do", prepared(), Migrate, "n1 n2 "},
		{"all done", migrated(), Migrate, ""},
		{"one half done", half, Migrate, "n2 "},
		{"rollback of all", migrated(), Rollback, "n1 n2 "},
		{"rollback of the rest", back, Rollback, "n2 "},
		{"rollback of one half back", returning, Rollback, "n1 n2 "},
		{"a migration after a rollback that stopped", returning, Migrate, "n1 "},
		{"rollback of nothing", rolledBack(), Rollback, ""},
	} {
		if got := names(tt.state, tt.operation); got != tt.want {
			t.Errorf("%s: targets %q, want %q", tt.name, got, tt.want)
		}
	}
}
