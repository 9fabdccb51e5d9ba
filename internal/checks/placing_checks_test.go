package checks

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// env gives the container "gpus" of the driver a variable; without a name it is made
// alone.
func env(name, value string) func(*state) {
	return func(s *state) {
		t := &s.daemonSet("driver").Spec.Template.Spec
		if len(t.Containers) == 0 {
			t.Containers = []corev1.Container{{Name: "gpus", Image: "registry.example/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1"}}
		}
		if name != "" {
			t.Containers[0].Env = append(t.Containers[0].Env, corev1.EnvVar{Name: name, Value: value})
		}
	}
}

// all makes several changes.
func all(changes ...func(*state)) func(*state) {
	return func(s *state) {
		for _, c := range changes {
			c(s)
		}
	}
}

// running adds a DaemonSet of NVIDIA's operator with a pod on each node.
func running(name, app string, nodes ...string) func(*state) {
	return func(s *state) {
		s.addDaemonSet(name, map[string]string{"app": app}, "")
		for _, n := range nodes {
			s.runDaemon(name, n)
		}
	}
}

// everywhere lets the driver run, not kept to switched nodes, on these.
func everywhere(nodes ...string) func(*state) {
	return func(s *state) {
		s.daemonSet("driver").Spec.Template.Spec.Affinity = nil
		for _, n := range nodes {
			s.runDaemon("driver", n)
		}
	}
}

func TestDRM062(t *testing.T) {
	t.Parallel()
	strategy := func(name string, unavailable, surge *intstr.IntOrString) func(*state) {
		return func(s *state) {
			s.daemonSet(name).Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: unavailable, MaxSurge: surge},
			}
		}
	}
	plugin, drv := "daemonset/kube-system/plugin", "daemonset/kube-system/driver"
	try(t, "DRM062", []given{
		{"one at a time", Prepare, untouched, strategy("plugin", ptr.To(intstr.FromInt32(1)), nil), nil, ""},
		{"all at a time", Prepare, untouched, strategy("plugin", ptr.To(intstr.FromString("100%")), nil), []string{"info " + plugin}, "up to 3 of its 3 nodes"},
		{"a share, rounded up", Prepare, untouched, strategy("plugin", ptr.To(intstr.FromString("34%")), nil), []string{"info " + plugin}, "up to 2 of its 3 nodes"},
		{"a second pod beside the first", Prepare, untouched, strategy("plugin", ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromInt32(1))),
			[]string{"warning " + plugin}, "two pods of one plugin"},
		{"nothing is edited", Prepare, prepared, strategy("plugin", ptr.To(intstr.FromString("100%")), nil), nil, ""},
		{"restarted by nobody", Prepare, untouched, func(s *state) {
			s.daemonSet("plugin").Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		}, nil, ""},
		{"its owner edits it", Prepare, untouched, all(strategy("plugin", ptr.To(intstr.FromString("100%")), nil), func(s *state) {
			s.daemonSet("plugin").Annotations = map[string]string{"meta.helm.sh/release-name": "r"}
		}), nil, ""},
		{"the driver's chart as it comes", Prepare, prepared, all(everywhere("m1", "n1"), strategy("driver", ptr.To(intstr.FromString("100%")), nil)),
			[]string{"info " + drv}, "up to 2 of its 2 nodes"},
	})
}

func TestDRM063(t *testing.T) {
	t.Parallel()
	root := func(path string) func(*state) { return env("NVIDIA_DRIVER_ROOT", path) }
	operator := running("kernel", "nvidia-driver-daemonset", "n1", "n2")
	both := func(key, value string) func(*state) {
		return func(s *state) { s.node("n1").Labels[key], s.node("n2").Labels[key] = value, value }
	}
	try(t, "DRM063", []given{
		{"the operator's driver, and the chart's default", Migrate, prepared, all(operator, root("/")), []string{"blocker pool/gpu"}, "below /, and here it is below /run/nvidia/driver: daemonset/kube-system/kernel"},
		{"before prepare it only warns", Prepare, prepared, all(running("kernel", "nvidia-driver-daemonset", "m1", "n1", "n2"), root("/")), []string{"warning nodes"}, ""},
		{"the operator's driver, found", Migrate, prepared, all(operator, root("/run/nvidia/driver")), nil, ""},
		{"one node has it on the host", Migrate, prepared, all(running("kernel", "nvidia-driver-daemonset", "n1"), label("n2", "nvidia.com/gpu.deploy.driver", "pre-installed"), root("/run/nvidia/driver")),
			[]string{"blocker node/n2"}, "pre-installed"},
		{"GKE", Migrate, prepared, all(both("cloud.google.com/gke-nodepool", "gpu"), root("/")), []string{"blocker pool/gpu"}, "/home/kubernetes/bin/nvidia: GKE installs it there"},
		{"GKE, found", Migrate, prepared, all(both("cloud.google.com/gke-nodepool", "gpu"), root("/home/kubernetes/bin/nvidia/")), nil, ""},
		{"on the host, as far as can be seen", Migrate, prepared, root("/opt/nvidia"), []string{"warning pool/gpu"}, "no container brings it"},
		{"it came up on such a node", Migrate, prepared, all(root("/opt/nvidia"), func(s *state) { s.runDaemon("driver", "m1") }), nil, ""},
		{"it stays in its init container on such a node", Migrate, prepared, all(running("kernel", "nvidia-driver-daemonset", "m1", "n1", "n2"), root("/"), func(s *state) {
			s.runDaemon("driver", "m1").Ready = false
		}), []string{"blocker pool/gpu"}, ""},
		{"the folder that is mounted", Migrate, prepared, all(operator, func(s *state) {
			t := &s.daemonSet("driver").Spec.Template.Spec
			t.Volumes = append(t.Volumes, corev1.Volume{Name: "driver-root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
		}), []string{"blocker pool/gpu"}, ""},
		{"a driver that does not say", Migrate, prepared, operator, nil, ""},
	})
}

// B-083: eksctl's plugin runs on CPU nodes as well, and crashes there.
func TestDRM064(t *testing.T) {
	t.Parallel()
	plugin, drv := "daemonset/kube-system/plugin", "daemonset/kube-system/driver"
	waits := func(pod, reason string) func(*state) {
		return func(s *state) { s.pod(pod).Ready, s.pod(pod).Waiting = false, reason }
	}
	down := func(node string) func(*state) {
		return func(s *state) { s.node(node).Status.Conditions[0].Status = corev1.ConditionUnknown }
	}
	try(t, "DRM064", []given{
		{"a plugin's pod that crashes: prepare would wait for it", Prepare, untouched, waits("plugin-m1", "CrashLoopBackOff"), []string{"blocker " + plugin}, "on node m1 is not ready (CrashLoopBackOff)"},
		{"on a CPU node", Prepare, untouched, func(s *state) {
			p := s.runDaemon("plugin", "cpu")
			p.Ready, p.Waiting = false, "CrashLoopBackOff"
		}, []string{"blocker " + plugin}, "node cpu"},
		{"on a node that is down", Prepare, untouched, all(waits("plugin-m1", ""), down("m1")), []string{"blocker " + plugin}, "its node is not ready"},
		{"it is coming up", Prepare, untouched, waits("plugin-m1", "ContainerCreating"), []string{"warning " + plugin}, "ContainerCreating"},
		{"it is not edited", Prepare, prepared, waits("plugin-m1", "ImagePullBackOff"), []string{"warning " + plugin}, ""},
		{"it is not restarted", Prepare, untouched, all(waits("plugin-m1", "ImagePullBackOff"), func(s *state) {
			s.daemonSet("plugin").Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		}), []string{"warning " + plugin}, ""},
		{"on another pool", Migrate, prepared, waits("plugin-m1", "CrashLoopBackOff"), nil, ""},
		{"on the pool", Migrate, prepared, waits("plugin-n1", "CrashLoopBackOff"), []string{"warning " + plugin}, ""},
		{"on a node of the pool that is down: DRM021 says so", Migrate, prepared, all(waits("plugin-n1", ""), down("n1")), nil, ""},
		{"on its way out", Migrate, prepared, all(waits("plugin-n1", ""), func(s *state) { s.pod("plugin-n1").Terminating = true }), nil, ""},
		{"the driver comes up nowhere", Migrate, prepared, func(s *state) {
			p := s.runDaemon("driver", "m1")
			p.Ready, p.Waiting = false, "ImagePullBackOff"
		}, []string{"blocker " + drv}, "the driver's pod on node m1 is not ready (ImagePullBackOff)"},
		{"the driver stays in its init container", Migrate, prepared, func(s *state) {
			p := s.runDaemon("driver", "m1")
			p.Ready, p.Waiting = false, "PodInitializing"
		}, []string{"warning " + drv}, ""},
		{"the driver comes up on some nodes", Migrate, migrated, waits("driver-n1", "CrashLoopBackOff"), []string{"warning " + drv}, ""},
		{"the driver is down where it has to end pods", Rollback, migrated, waits("driver-n1", "CrashLoopBackOff"), []string{"warning " + drv}, ""},
		{"a plugin's pod on the way back", Rollback, migrated, waits("plugin-m1", "CrashLoopBackOff"), nil, ""},
	})
}

// B-111: the kubelet's root is elsewhere, and the driver registers where it does not look.
func TestDRM065(t *testing.T) {
	t.Parallel()
	moved := func(root string) func(*state) {
		return func(s *state) {
			s.daemonSet("plugin").Spec.Template.Spec.Volumes[0].HostPath.Path = root + "/device-plugins"
		}
	}
	both := []string{"blocker pool/gpu", "warning pool/gpu"}
	k0s := func(s *state) {
		for _, n := range []string{"n1", "n2"} {
			s.node(n).Status.NodeInfo.KubeletVersion = "v1.37.2+k0s"
		}
		s.daemonSet("plugin").Spec.Template.Spec.Volumes = nil
		s.daemonSet("plugin").Spec.Template.Spec.Containers = []corev1.Container{{Name: "mps-control-daemon-ctr"}}
	}
	try(t, "DRM065", []given{
		{"the plugin shows another", Migrate, prepared, moved("/mnt/kubelet"), both, "registers in /var/lib/kubelet/plugins_registry, and the kubelet's root is /mnt/kubelet (daemonset/kube-system/plugin registers in /mnt/kubelet/device-plugins)"},
		{"it was moved with the plugin", Migrate, prepared, all(moved("/mnt/kubelet"), func(s *state) {
			s.daemonSet("driver").Spec.Template.Spec.Volumes[0].HostPath.Path = "/mnt/kubelet/plugins_registry"
		}), []string{"warning pool/gpu"}, "the tool's probe mounts /var/lib/kubelet/pod-resources"},
		{"no driver yet", Prepare, untouched, moved("/mnt/kubelet"), []string{"warning nodes"}, "a driver has to be told"},
		{"the usual one", Migrate, prepared, nil, nil, ""},
		{"k0s, and no plugin shows where", Migrate, prepared, k0s, []string{"warning pool/gpu", "warning pool/gpu"}, "as k0s has it"},
		{"MicroK8s, and the plugin shows the usual one: a link", Migrate, prepared, label("n1", "microk8s.io/cluster", "true"), nil, ""},
	})
}

func TestDRM066(t *testing.T) {
	t.Parallel()
	drv := []string{"blocker daemonset/kube-system/driver"}
	in := func(namespace string) func(*state) {
		return func(s *state) { s.daemonSet("driver").Namespace = namespace }
	}
	class := func(name string) func(*state) {
		return func(s *state) { s.daemonSet("driver").Spec.Template.Spec.PriorityClassName = name }
	}
	quota := func(hard, used string, scopes ...corev1.ScopedResourceSelectorRequirement) func(*state) {
		return func(s *state) {
			q := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.daemonSet("driver").Namespace, Name: "q"}}
			q.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse(hard)}
			q.Status.Used = corev1.ResourceList{"pods": resource.MustParse(used)}
			if len(scopes) > 0 {
				q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: scopes}
			}
			s.Quotas = append(s.Quotas, q)
		}
	}
	forClass := func(names ...string) corev1.ScopedResourceSelectorRequirement {
		return corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: names}
	}
	gke := func(s *state) {
		s.node("n1").Labels["cloud.google.com/gke-nodepool"], s.node("n2").Labels["cloud.google.com/gke-nodepool"] = "gpu", "gpu"
	}
	onGKE := all(gke, in("gpu"), class("system-node-critical"))
	elsewhere := []string{"blocker daemonset/gpu/driver"}
	try(t, "DRM066", []given{
		{"GKE without a quota for the class", Migrate, prepared, onGKE, elsewhere, "namespace gpu has none"},
		{"GKE with one", Migrate, prepared, all(onGKE, quota("100", "0", forClass("system-node-critical", "system-cluster-critical"))), nil, ""},
		{"GKE with one for another class", Migrate, prepared, all(onGKE, quota("100", "0", forClass("high"))), elsewhere, ""},
		{"GKE, where its pods are let in already", Migrate, prepared, all(gke, in("gpu"), class("system-node-critical"), func(s *state) { s.runDaemon("driver", "m1").Namespace = "gpu" }), nil, ""},
		{"GKE, kube-system", Migrate, prepared, all(gke, class("system-node-critical")), nil, ""},
		{"GKE, quotas unread", Migrate, prepared, all(onGKE, func(s *state) {
			s.Unknown = []cluster.Unknown{{Part: cluster.PartQuotas, Reason: "forbidden"}}
		}), []string{"warning daemonset/gpu/driver"}, "quotas could not be read (forbidden)"},
		{"not GKE", Migrate, prepared, all(in("gpu"), class("system-node-critical")), nil, ""},
		{"no room for two pods", Migrate, prepared, quota("10", "9"), drv, "leaves room for 1 more pods, and the driver needs one on each of 2 nodes"},
		{"room for two pods", Migrate, prepared, quota("10", "8"), nil, ""},
		{"no room, in another namespace", Migrate, prepared, all(quota("10", "10"), in("gpu")), nil, ""},
		{"no room, for pods of another class", Migrate, prepared, quota("10", "10", forClass("high")), nil, ""},
		{"a class that is not there", Migrate, prepared, class("gpu-critical"), drv, "gpu-critical, which does not exist"},
		{"classes unread", Migrate, prepared, all(class("gpu-critical"), unread(cluster.PartPriorityClasses)),
			[]string{"warning daemonset/kube-system/driver"}, "whether that exists could not be seen (forbidden)"},
		{"a class that is there", Migrate, prepared, all(class("gpu-critical"), func(s *state) {
			s.PriorityClasses = []cluster.PriorityClass{{Name: "gpu-critical"}}
		}), nil, ""},
		{"its pods are there already", Migrate, prepared, all(quota("10", "10"), everywhere("n1", "n2")), nil, ""},
	})
}

func TestDRM067(t *testing.T) {
	t.Parallel()
	chart := func(name string) func(*state) {
		return func(s *state) { s.daemonSet("driver").Labels = map[string]string{"helm.sh/chart": name} }
	}
	drv := []string{"info daemonset/kube-system/driver"}
	try(t, "DRM067", []given{
		{"before it carried the mapping", Migrate, prepared, chart("nvidia-dra-driver-gpu-25.8.1"), drv, "does not map nvidia.com/gpu"},
		{"the last one by the calendar", Prepare, prepared, chart("nvidia-dra-driver-gpu-25.12.0"), drv, "0.4 follows 25.12"},
		{"after the renaming, with lower numbers", Migrate, prepared, chart("dra-driver-nvidia-gpu-0.4.1"), nil, ""},
		{"by its image", Migrate, prepared, func(s *state) {
			s.daemonSet("driver").Spec.Template.Spec.Containers = []corev1.Container{{Name: "gpus", Image: "nvcr.io/nvidia/k8s-dra-driver-gpu:v25.8.0"}}
		}, drv, "image nvcr.io/nvidia/k8s-dra-driver-gpu:v25.8.0"},
		{"a version that nobody can read", Migrate, prepared, chart("nvidia-dra-driver-gpu-main"), nil, ""},
	})
	s := prepared()
	chart("nvidia-dra-driver-gpu-25.12.0")(s)
	for _, f := range Run(s.of(Migrate)) {
		if f.Code == "DRM067" && strings.Contains(f.Message, "does not map") {
			t.Errorf("%q: 25.12 maps the resource", f.Message)
		}
	}
}

func TestDRM068(t *testing.T) {
	t.Parallel()
	second := func(exprs ...corev1.NodeSelectorRequirement) func(*state) {
		return func(s *state) {
			s.addDaemonSet("old", map[string]string{"nvidia-dra-driver-gpu-component": "kubelet-plugin"}, "/var/lib/kubelet/plugins_registry", exprs...)
		}
	}
	try(t, "DRM068", []given{
		{"both generations of the chart", Migrate, prepared, second(), []string{"blocker pool/gpu"}, "daemonset/kube-system/driver and daemonset/kube-system/old would both run gpu.nvidia.com"},
		{"the second keeps to other nodes", Migrate, prepared, second(corev1.NodeSelectorRequirement{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpIn, Values: []string{"other"}}), nil, ""},
		{"the second serves compute domains alone", Migrate, prepared, func(s *state) {
			second()(s)
			s.daemonSet("old").Spec.Template.Spec.Containers = []corev1.Container{{Name: "compute-domains"}}
		}, nil, ""},
		{"one", Migrate, prepared, nil, nil, ""},
	})
}

func TestDRM069(t *testing.T) {
	t.Parallel()
	gfd := func(exprs ...corev1.NodeSelectorRequirement) func(*state) {
		return func(s *state) {
			ds := s.addDaemonSet("gfd", map[string]string{"app.kubernetes.io/instance": "nvdp"}, "", exprs...)
			ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "gpu-feature-discovery-ctr", Image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"}}
		}
	}
	release := func(s *state) {
		s.daemonSet("plugin").Annotations = map[string]string{"meta.helm.sh/release-name": "nvdp"}
		s.daemonSet("plugin").Labels = map[string]string{"helm.sh/chart": "nvidia-device-plugin-0.20.0", "app.kubernetes.io/instance": "nvdp"}
	}
	off := corev1.NodeSelectorRequirement{Key: "dramigrate.dev/allocation", Operator: corev1.NodeSelectorOpDoesNotExist}
	try(t, "DRM069", []given{
		{"it heeds the label, too", Migrate, prepared, gfd(off), []string{"warning pool/gpu"}, "daemonset/kube-system/gfd leaves the node with the plugin"},
		{"it stays", Migrate, prepared, gfd(), nil, ""},
		{"the chart would move it along", Prepare, untouched, all(release, gfd()), []string{"info daemonset/kube-system/plugin"}, "also those of daemonset/kube-system/gfd"},
		{"another release", Prepare, untouched, all(release, gfd(), func(s *state) {
			s.daemonSet("gfd").Spec.Template.Labels["app.kubernetes.io/instance"] = "gfd"
		}), nil, ""},
		{"an edit is of the plugin alone", Prepare, untouched, all(release, gfd(), func(s *state) { s.daemonSet("plugin").Annotations = nil }), nil, ""},
	})
}

func TestDRM070(t *testing.T) {
	t.Parallel()
	level := func(namespace, value string) func(*state) {
		return func(s *state) {
			ns := cluster.Namespace{Name: namespace, Labels: map[string]string{}}
			if value != "" {
				ns.Labels["pod-security.kubernetes.io/enforce"] = value
			}
			s.Namespaces = append(s.Namespaces, ns)
		}
	}
	try(t, "DRM070", []given{
		{"the driver's", Migrate, prepared, level("kube-system", "baseline"), []string{"blocker namespace/kube-system"}, "enforce=baseline refuses new pods of daemonset/kube-system/driver,"},
		{"the driver's, before prepare", Prepare, prepared, level("kube-system", "restricted"), []string{"warning namespace/kube-system"}, ""},
		{"that of a plugin that is restarted", Prepare, untouched, level("kube-system", "restricted"), []string{"blocker namespace/kube-system"}, "daemonset/kube-system/plugin"},
		{"that of the plugin that comes back", Rollback, migrated, level("kube-system", "restricted"), []string{"blocker namespace/kube-system"}, "daemonset/kube-system/plugin"},
		{"as it has to be", Migrate, prepared, level("kube-system", "privileged"), nil, ""},
		{"no level", Migrate, prepared, level("kube-system", ""), nil, ""},
		{"another namespace", Migrate, prepared, level("team", "restricted"), nil, ""},
		{"the tool's own", Migrate, prepared, level("dramigrate-system", "restricted"), []string{"blocker namespace/dramigrate-system"}, "the tool's helper pods"},
		{"no level on Talos", Migrate, prepared, all(level("dramigrate-system", ""), func(s *state) { s.node("n1").Status.NodeInfo.OSImage = "Talos (v1.11.0)" }),
			[]string{"warning namespace/dramigrate-system"}, "Talos enforces baseline"},
		{"namespaces unread", Migrate, prepared, func(s *state) {
			s.Unknown = []cluster.Unknown{{Part: cluster.PartNamespaces, Reason: "forbidden"}}
		}, []string{"warning namespaces"}, "could not be seen (forbidden)"},
	})
}

func TestDRM071(t *testing.T) {
	t.Parallel()
	bare := func(node string) func(*state) {
		return func(s *state) { delete(s.node(node).Labels, "feature.node.kubernetes.io/pci-10de.present") }
	}
	try(t, "DRM071", []given{
		{"none of the labels", Prepare, untouched, bare("n1"), []string{"warning node/n1"}, "none of the labels"},
		{"set by hand", Prepare, untouched, all(bare("n1"), label("n1", "nvidia.com/gpu.present", "true")), nil, ""},
		{"the driver is there: DRM022 asks it", Prepare, prepared, bare("n1"), nil, ""},
		{"a node without GPUs", Prepare, untouched, nil, nil, ""},
	})
}

// B-113: a driver that makes MIG devices itself meets those of somebody else.
func TestDRM072(t *testing.T) {
	t.Parallel()
	on := env("FEATURE_GATES", "IMEXDaemonsWithDNSNames=true,DynamicMIG=true,")
	try(t, "DRM072", []given{
		{"static partitions", Migrate, prepared, all(on, label("n1", "nvidia.com/mig.config", "all-1g.5gb")), []string{"blocker node/n1", "warning node/n2"}, "mig.config=all-1g.5gb, and daemonset/kube-system/driver runs with DynamicMIG=true"},
		{"static partitions, before prepare", Prepare, prepared, all(on, has("m1", "nvidia.com/mig-1g.5gb", "7")), []string{"blocker node/m1"}, ""},
		{"whole GPUs", Migrate, prepared, on, []string{"warning pool/gpu"}, "any MIG device that it did not make"},
		{"off", Migrate, prepared, all(env("FEATURE_GATES", "DynamicMIG=false"), label("n1", "nvidia.com/mig.config", "all-1g.5gb")), nil, ""},
		{"not named", Migrate, prepared, all(env("", ""), label("n1", "nvidia.com/mig.config", "all-1g.5gb")), nil, ""},
	})
}

// B-155: what the plugin holds back as broken is given out again.
func TestDRM073(t *testing.T) {
	t.Parallel()
	try(t, "DRM073", []given{
		{"the default", Migrate, prepared, env("", ""), []string{"info daemonset/kube-system/driver"}, "without the feature gate"},
		{"it watches", Migrate, prepared, env("FEATURE_GATES", "NVMLDeviceHealthCheck=true"), nil, ""},
		{"a GPU that is held back", Migrate, prepared, all(env("", ""), func(s *state) {
			s.node("n1").Status.Allocatable[gpu] = resource.MustParse("1")
		}), []string{"warning node/n1"}, "holds 1 of 2 nvidia.com/gpu back as unhealthy"},
		{"another vendor's driver", Migrate, prepared, nil, nil, ""},
		{"nothing is left to move", Migrate, migrated, env("", ""), nil, ""},
	})
}

func TestDRM074(t *testing.T) {
	t.Parallel()
	intel := func(host bool, port string) func(*state) {
		return func(s *state) {
			ds := s.addDaemonSet("intel", nil, "/var/lib/kubelet/plugins_registry")
			c := corev1.Container{Name: "kubelet-plugin", Image: "ghcr.io/intel/intel-resource-drivers-for-kubernetes/intel/intel-gpu-resource-driver:v0.11.0"}
			if port != "" {
				c.Env = []corev1.EnvVar{{Name: "HEALTHCHECK_PORT", Value: port}}
			}
			ds.Spec.Template.Spec.Containers = []corev1.Container{c}
			ds.Spec.Template.Spec.HostNetwork = host
			s.daemonSet("driver").Spec.Template.Spec.HostNetwork = true
		}
	}
	port := env("HEALTHCHECK_PORT", "51516")
	try(t, "DRM074", []given{
		{"both on the host's port", Migrate, prepared, all(port, intel(true, "")), []string{"warning pool/gpu"}, "port 51516"},
		{"another port", Migrate, prepared, all(port, intel(true, "51517")), nil, ""},
		{"a network of its own", Migrate, prepared, all(port, intel(false, "")), nil, ""},
		{"no port", Migrate, prepared, all(env("", ""), intel(true, "")), nil, ""},
	})
}

// B-089: the toolkit was replaced under the driver.
func TestDRM075(t *testing.T) {
	t.Parallel()
	born := func(pod string, minute int) func(*state) {
		return func(s *state) { s.pod(pod).Created = time.Date(2026, 9, 1, 12, minute, 0, 0, time.UTC) }
	}
	kit := running("toolkit", "nvidia-container-toolkit-daemonset", "n1")
	drv := []string{"warning daemonset/kube-system/driver"}
	try(t, "DRM075", []given{
		{"the toolkit is younger", Migrate, migrated, all(kit, born("driver-n1", 1), born("toolkit-n1", 2)), drv, "on node n1 its pod is older than that of daemonset toolkit"},
		{"the toolkit is older", Migrate, migrated, all(kit, born("driver-n1", 2), born("toolkit-n1", 1)), nil, ""},
		{"the kernel driver is younger", Migrate, migrated, all(running("kernel", "nvidia-driver-daemonset", "n2"), born("driver-n2", 1), born("kernel-n2", 2)), drv, "node n2"},
		{"nobody knows how old it is", Migrate, migrated, all(kit, born("toolkit-n1", 2)), nil, ""},
	})
}

// B-087: that a claim leaked into the checkpoint cannot be known, and that is said.
func TestDRM076(t *testing.T) {
	t.Parallel()
	ran := func(operation string) func(*state) {
		return func(s *state) {
			s.Journals = []cluster.Journal{{Pool: "gpu", Runs: []cluster.RunRecord{{Operation: operation}}}}
		}
	}
	try(t, "DRM076", []given{
		{"the pool was on DRA before", Migrate, rolledBack, ran(Rollback), []string{"info pool/gpu"}, "cannot be seen"},
		{"a first run", Migrate, prepared, ran(Migrate), nil, ""},
		{"the driver runs there now", Migrate, prepared, everywhere("n1"), []string{"info node/n1"}, ""},
		{"nothing tells of it", Migrate, prepared, nil, nil, ""},
	})
}

func TestDRM077(t *testing.T) {
	t.Parallel()
	try(t, "DRM077", []given{
		{"one node differs", Migrate, prepared, label("n1", "nvidia.com/device-plugin.config", "sliced"), []string{"warning pool/gpu"}, "(without it: node n2; sliced: node n1)"},
		{"all alike", Migrate, prepared, all(label("n1", "nvidia.com/device-plugin.config", "whole"), label("n2", "nvidia.com/device-plugin.config", "whole")), nil, ""},
		{"another pool's", Migrate, prepared, label("m1", "nvidia.com/device-plugin.config", "sliced"), nil, ""},
	})
}
