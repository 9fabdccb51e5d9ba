package checks

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

const pluginFolder = "/var/lib/kubelet/device-plugins"

// allocatable leaves a node's capacity as it is.
func allocatable(node, name, count string) func(*state) {
	return func(s *state) {
		s.node(node).Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse(count)
	}
}

func TestDRM038(t *testing.T) {
	t.Parallel()
	second := func(node string) func(*state) {
		return func(s *state) {
			s.addDaemonSet("second", map[string]string{"k8s-app": "nvidia-gpu-device-plugin"}, pluginFolder)
			s.runDaemon("second", node)
		}
	}
	replaced := func(s *state) {
		old := *s.pod("plugin-n1")
		old.Name, old.UID, old.Terminating = "plugin-old", "old", true
		s.Pods = append(s.Pods, old)
	}
	stray := func(s *state) {
		p := s.addPod("by-hand", "n1", 0)
		p.HostPaths, p.Owner = []string{pluginFolder + "/"}, cluster.Owner{}
	}
	try(t, "DRM038", []given{
		{"two DaemonSets", Migrate, prepared, second("n1"), []string{"warning node/n1"}, "pod/kube-system/plugin-n1, pod/kube-system/second-n1"},
		{"two DaemonSets, before prepare", Prepare, untouched, second("m1"), []string{"warning node/m1"}, ""},
		{"two DaemonSets on different nodes", Migrate, prepared, both(second("n2"), func(s *state) { s.stop("plugin", "n2") }), nil, ""},
		{"the second on another pool", Migrate, prepared, second("m1"), nil, ""},
		{"one is on its way out", Migrate, prepared, replaced, []string{"warning node/n1"}, "plugin-old"},
		{"one has ended", Migrate, prepared, both(replaced, func(s *state) { s.pod("plugin-old").Phase = corev1.PodSucceeded }), nil, ""},
		{"one was started by hand", Migrate, prepared, stray, []string{"warning node/n1"}, "pod/team/by-hand"},
	})
}

func TestDRM039(t *testing.T) {
	t.Parallel()
	recorded := func(uuids string) func(*state) {
		return func(s *state) {
			s.node("n1").Annotations["dramigrate.dev/state"] = `{"pool":"gpu","operation":"migrate","run":"r","advertised":[` + uuids + `],"openedAt":"2026-01-01T00:00:00Z"}`
		}
	}
	try(t, "DRM039", []given{
		{"one of two is faulty", Migrate, prepared, allocatable("n1", gpu, "1"), []string{"warning node/n1"}, "1 of 2 nvidia.com/gpu are allocatable: 1 not healthy"},
		{"all are is DRM026's", Migrate, prepared, allocatable("n1", gpu, "0"), nil, ""},
		{"healthy", Migrate, prepared, nil, nil, ""},
		{"a node that has moved, its capacity still up", Migrate, migrated, nil, nil, ""},
		{"the driver has lost one since", Rollback, migrated, recorded(`"GPU-n1-gpu-0","GPU-n1-gpu-1","GPU-gone"`), []string{"warning node/n1"}, "no longer publishes GPU-gone"},
		{"the driver has lost one, as it stands", Verify, migrated, recorded(`"GPU-n1-gpu-0","GPU-n1-gpu-1","GPU-gone"`), []string{"warning node/n1"}, "no longer publishes GPU-gone"},
		{"as it stands on the plugin, one of two is faulty", Verify, prepared, allocatable("n1", gpu, "1"), nil, ""},
		{"it has them all", Rollback, migrated, recorded(`"GPU-n1-gpu-1","GPU-n1-gpu-0"`), nil, ""},
		{"slices are incomplete, so that nothing is known", Rollback, migrated, both(recorded(`"GPU-gone"`), func(s *state) { s.Slices[0].Spec.Pool.ResourceSliceCount = 2 }), nil, ""},
	})
}

func TestDRM040(t *testing.T) {
	t.Parallel()
	uses := func(name string) func(*state) {
		return func(s *state) {
			s.addPod("user-a", "n1", 0).Requests = []cluster.Request{{Container: "main", Resource: corev1.ResourceName(name), Count: 1}}
		}
	}
	const patched = "example.com/dongle"
	try(t, "DRM040", []given{
		{"all GPUs whole, and partitions besides", Migrate, prepared, both(allocatable("n1", "nvidia.com/mig-1g.5gb", "14"), allocatable("n1", "nvidia.com/mig-7g.40gb", "2")),
			[]string{"warning node/n1"}, "all of its 2 GPUs as nvidia.com/gpu and 14 of nvidia.com/mig-1g.5gb, 2 of nvidia.com/mig-7g.40gb besides"},
		{"one GPU whole, the other partitioned", Migrate, prepared, both(allocatable("n1", gpu, "1"), allocatable("n1", "nvidia.com/mig-1g.5gb", "7")), nil, ""},
		{"zero is what a plugin leaves", Migrate, prepared, allocatable("n1", "nvidia.com/mig-1g.5gb", "0"), nil, ""},
		{"partitions whose plugin is gone", Rollback, migrated, allocatable("n1", "nvidia.com/mig-1g.5gb", "7"), []string{"warning node/n1"}, "no plugin that is known to serve it runs there"},
		{"patched in by hand, and used", Migrate, prepared, both(allocatable("n1", patched, "4"), uses(patched)), []string{"info node/n1"}, "replicaset/team/user-a use it"},
		{"patched in by hand, and used by nobody", Migrate, prepared, allocatable("n1", patched, "4"), nil, ""},
		{"a plugin that is not known may serve it", Migrate, prepared, both(allocatable("n1", patched, "4"), uses(patched), func(s *state) {
			s.addPod("dongles", "n1", 0).HostPaths = []string{pluginFolder}
		}), nil, ""},
		{"NVIDIA's network plugin", Migrate, prepared, allocatable("n1", "nvidia.com/hostdev", "8"), nil, ""},
	})
}

func TestDRM041(t *testing.T) {
	t.Parallel()
	publish := func(node string, count int64, devices ...string) func(*state) {
		return func(s *state) {
			sl := nodeSlice(node, driver, devices...)
			sl.Spec.Pool.ResourceSliceCount = count
			s.Slices = append(s.Slices, sl)
		}
	}
	try(t, "DRM041", []given{
		{"one slice of two", Migrate, migrated, publish("m1", 2, "gpu-0"), []string{"warning node/m1"}, "has 1 of 2 slices of generation 1"},
		{"one of the pool, on the way back", Rollback, migrated, func(s *state) { s.Slices[0].Spec.Pool.ResourceSliceCount = 3 }, []string{"warning node/n1"}, ""},
		{"a slice of an older generation besides", Migrate, migrated, func(s *state) {
			old := nodeSlice("n1", driver, "gpu-9")
			old.Spec.Pool.Generation = 0
			s.Slices = append(s.Slices, old)
		}, nil, ""},
		{"no device", Migrate, migrated, publish("m1", 1), []string{"warning node/m1"}, "publishes a slice without devices"},
		{"another driver's", Migrate, migrated, func(s *state) { s.Slices = append(s.Slices, nodeSlice("m1", "net.example")) }, nil, ""},
	})
}

func TestDRM042(t *testing.T) {
	t.Parallel()
	gone := func(s *state) { s.stop("driver", "n1") }
	release := func(s *state) { s.Claims = nil }
	try(t, "DRM042", []given{
		{"its pods could not end", Rollback, migrated, gone, []string{"blocker node/n1"}, "1 claim holds one of its devices"},
		{"the kubelet has removed the slices since", Rollback, migrated, both(gone, func(s *state) { s.Slices = s.Slices[1:] }), []string{"blocker node/n1"}, ""},
		{"no claim", Rollback, migrated, both(gone, release), []string{"warning node/n1"}, "publishes 1 slice, and no pod of it runs there"},
		{"found before another pool is moved", Migrate, migrated, gone, []string{"warning node/n1"}, ""},
		{"not ready, and devices in use", Rollback, migrated, func(s *state) { s.pod("driver-n1").Ready = false }, []string{"warning node/n1"}, "not ready"},
		{"not ready, nothing in use", Rollback, migrated, both(release, func(s *state) { s.pod("driver-n1").Ready = false }), nil, ""},
		{"a run has taken it off", Rollback, migrated, both(gone, release, label("n1", "dramigrate.dev/allocation", "switching")), nil, ""},
		{"the driver is not known", Rollback, migrated, func(s *state) {
			s.DaemonSets = s.DaemonSets[:1]
			s.stop("driver", "n1")
			s.stop("driver", "n2")
		}, []string{"warning nodes"}, "whether it is alive cannot be seen"},
		{"another driver's slices", Migrate, prepared, func(s *state) { s.Slices = append(s.Slices, nodeSlice("n1", "net.example", "nic-0")) }, nil, ""},
	})
}

func TestDRM043(t *testing.T) {
	t.Parallel()
	shared := func(driverName string) func(*state) {
		return func(s *state) {
			sl := nodeSlice("", driverName, "gpu-9")
			sl.Name, sl.Spec.NodeName = "everywhere", nil
			s.Slices = append(s.Slices, sl)
		}
	}
	try(t, "DRM043", []given{
		{"these alone", Migrate, prepared, shared(driver), []string{"blocker driver/gpu.nvidia.com"}, "wait in vain"},
		{"beside those of nodes", Migrate, migrated, shared(driver), []string{"warning driver/gpu.nvidia.com"}, "everywhere"},
		{"on the way back", Rollback, migrated, shared(driver), []string{"warning driver/gpu.nvidia.com"}, ""},
		{"another driver's", Migrate, prepared, shared("net.example"), nil, ""},
	})
}

func TestDRM044(t *testing.T) {
	t.Parallel()
	pod := func(name, devices string, privileged bool, count int64) func(*state) {
		return func(s *state) {
			p := s.addPod(name, "n1", count)
			p.VisibleDevices, p.Privileged = devices, privileged
			p.Owner = cluster.Owner{Kind: "StatefulSet", Name: "db"}
		}
	}
	daemon := func(s *state) {
		s.addDaemonSet("dcgm", nil, "")
		s.runDaemon("dcgm", "n1").VisibleDevices = "all"
	}
	db := []string{"warning statefulset/team/db"}
	try(t, "DRM044", []given{
		{"the variable alone", Migrate, prepared, pod("a", "all", false, 0), db, "NVIDIA_VISIBLE_DEVICES=all is set without a request"},
		{"the variable beside a request", Migrate, prepared, pod("a", "0,1", false, 1), db, "NVIDIA_VISIBLE_DEVICES=0,1 is set beside a request"},
		{"privileged with a request", Migrate, prepared, pod("a", "", true, 1), db, "privileged"},
		{"privileged without", Migrate, prepared, pod("a", "", true, 0), nil, ""},
		{"void", Migrate, prepared, pod("a", "void", false, 1), nil, ""},
		{"finished", Migrate, prepared, both(pod("a", "all", false, 0), func(s *state) { s.pod("a").Phase = corev1.PodFailed }), nil, ""},
		{"on another pool", Migrate, prepared, both(pod("a", "all", false, 0), func(s *state) { s.pod("a").Node = "m1" }), nil, ""},
		{"the plugin itself", Migrate, prepared, func(s *state) { s.pod("plugin-n1").VisibleDevices = "all" }, nil, ""},
		{"monitoring", Migrate, prepared, daemon, []string{"info pool/gpu"}, "daemonset/kube-system/dcgm"},
		{"another vendor's resource", Migrate, prepared, both(pod("a", "all", false, 0), func(s *state) { s.in.Resource = "amd.com/gpu" }), nil, ""},
	})
}

// 500 pods of one owner are one finding, and so are 100 owners beyond the first ten.
func TestDRM044IsBounded(t *testing.T) {
	t.Parallel()
	s := prepared()
	for i := range 500 {
		p := s.addPod(fmt.Sprintf("web-%d", i), "n1", 0)
		p.Labels["pod-template-hash"], p.Owner = "5f", cluster.Owner{Kind: "ReplicaSet", Name: "web-5f"}
		p.VisibleDevices = "all"
	}
	findings := Only(s.of(Migrate), []string{"DRM044"})
	if len(findings) != 1 || findings[0].Object != "deployment/team/web" || !strings.HasPrefix(findings[0].Message, "500 pods") {
		t.Errorf("findings %+v, want one of deployment/team/web with 500 pods", findings)
	}
	for i := range 100 {
		p := s.addPod(fmt.Sprintf("job-%03d", i), "n2", 0)
		p.UID, p.Owner, p.VisibleDevices = types.UID(p.Name), cluster.Owner{Kind: "Job", Name: p.Name}, "all"
	}
	findings = Only(s.of(Migrate), []string{"DRM044"})
	if len(findings) != mostOwners+1 || !strings.HasPrefix(findings[len(findings)-1].Message, "91 more workloads") || findings[len(findings)-1].Remedy == "" {
		t.Errorf("%d findings, the last %+v, want %d and then the 91 others in one", len(findings), findings[len(findings)-1], mostOwners)
	}
}
