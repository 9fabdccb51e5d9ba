package gate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// program describes a DaemonSet: what its pods do, and where they run.
type program struct {
	name    string
	labels  map[string]string
	image   string
	command string
	mounts  []string
	a       *corev1.Affinity
	nodes   []string
}

// world builds a Snapshot of DaemonSets, their pods, and nodes given as
// "name resource=n resource=n".
func world(programs []program, nodes ...string) *cluster.Snapshot {
	s := &cluster.Snapshot{}
	for _, p := range programs {
		ds := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: p.name, UID: types.UID(p.name)}}
		t := &ds.Spec.Template
		t.Labels = p.labels
		t.Spec.Affinity = p.a
		c := corev1.Container{Name: "main", Image: p.image}
		if p.command != "" {
			c.Command = []string{p.command}
		}
		t.Spec.Containers = []corev1.Container{c}
		for _, m := range p.mounts {
			t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: m}}})
		}
		s.DaemonSets = append(s.DaemonSets, ds)
		for _, n := range p.nodes {
			s.Pods = append(s.Pods, cluster.Pod{Namespace: "kube-system", Name: p.name + "-" + n, Node: n, Phase: corev1.PodRunning,
				Owner: cluster.Owner{Kind: "DaemonSet", Name: p.name, UID: types.UID(p.name)}})
		}
	}
	for _, n := range nodes {
		words := strings.Fields(n)
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: words[0]}}
		node.Status.Capacity, node.Status.Allocatable = corev1.ResourceList{}, corev1.ResourceList{"cpu": resource.MustParse("8")}
		for _, w := range words[1:] {
			r, count, _ := strings.Cut(w, "=")
			node.Status.Capacity[corev1.ResourceName(r)] = resource.MustParse(count)
			node.Status.Allocatable[corev1.ResourceName(r)] = resource.MustParse(count)
		}
		s.Nodes = append(s.Nodes, node)
	}
	return s
}

const (
	pluginsDir  = "/var/lib/kubelet/device-plugins"
	registryDir = "/var/lib/kubelet/plugins_registry"
)

func nvidiaPlugin(nodes ...string) program {
	return program{name: "nvidia-device-plugin-daemonset", labels: map[string]string{"name": "nvidia-device-plugin-ds"},
		image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", mounts: []string{pluginsDir}, nodes: nodes}
}

func TestDetectPlugins(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		programs []program
		nodes    []string
		want     []string // "name role resources guess"
	}{
		{"the static manifest", []program{nvidiaPlugin("a", "cpu")}, []string{"a nvidia.com/gpu=2", "cpu"},
			[]string{"nvidia-device-plugin-daemonset device-plugin nvidia.com/gpu"}},
		{"all resources of the vendor's GPUs, zero or not", []program{nvidiaPlugin("a")},
			[]string{"a nvidia.com/gpu=0 nvidia.com/gpu.shared=8 nvidia.com/mig-1g.5gb=7 nvidia.com/hostdev=1 amd.com/gpu=1"},
			[]string{"nvidia-device-plugin-daemonset device-plugin nvidia.com/gpu,nvidia.com/gpu.shared,nvidia.com/mig-1g.5gb"}},
		{"a plugin that runs nowhere is still known", []program{nvidiaPlugin()}, []string{"a"},
			[]string{"nvidia-device-plugin-daemonset device-plugin "}},
		{"another kubelet root", []program{{name: "p", image: "registry.local:5000/nvidia/k8s-device-plugin@sha256:00", mounts: []string{"/data/kubelet/device-plugins/"}, nodes: []string{"a"}}},
			[]string{"a nvidia.com/gpu=1"}, []string{"p device-plugin nvidia.com/gpu"}},
		{"a known plugin with the whole kubelet folder", []program{{name: "p", labels: map[string]string{"k8s-app": "nvidia-gpu-device-plugin"}, mounts: []string{"/var/lib/kubelet"}, nodes: []string{"a"}}},
			[]string{"a nvidia.com/gpu=1"}, []string{"p device-plugin nvidia.com/gpu"}},
		{"the chart: plugin, MPS daemon and feature discovery share image and labels", []program{
			{name: "gfd", labels: map[string]string{"app.kubernetes.io/name": "nvidia-device-plugin"}, image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
				command: "gpu-feature-discovery", mounts: []string{"/sys"}, nodes: []string{"a"}},
			{name: "mps", labels: map[string]string{"app.kubernetes.io/name": "nvidia-device-plugin"}, image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
				command: "mps-control-daemon", mounts: []string{"/run/nvidia/mps"}, nodes: []string{"a"}},
			{name: "plugin", labels: map[string]string{"app.kubernetes.io/name": "nvidia-device-plugin"}, image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
				command: "nvidia-device-plugin", mounts: []string{pluginsDir}, nodes: []string{"a"}},
		}, []string{"a nvidia.com/gpu=1"}, []string{"mps mps-control-daemon nvidia.com/gpu", "plugin device-plugin nvidia.com/gpu"}},
		{"two plugins for one resource", []program{nvidiaPlugin("a"), {name: "second", labels: map[string]string{"k8s-app": "nvidia-gpu-device-plugin"}, mounts: []string{pluginsDir}, nodes: []string{"b"}}},
			[]string{"a nvidia.com/gpu=1", "b nvidia.com/gpu=1"},
			[]string{"nvidia-device-plugin-daemonset device-plugin nvidia.com/gpu", "second device-plugin nvidia.com/gpu"}},
		{"an unknown plugin", []program{{name: "acme", mounts: []string{pluginsDir}, nodes: []string{"a", "b"}}},
			[]string{"a acme.io/npu=4", "b acme.io/npu=4"}, []string{"acme device-plugin acme.io/npu"}},
		{"an unknown program beside a known plugin gets nothing", []program{nvidiaPlugin("a"), {name: "monitor", mounts: []string{pluginsDir}, nodes: []string{"a"}}},
			[]string{"a nvidia.com/gpu=1"}, []string{"nvidia-device-plugin-daemonset device-plugin nvidia.com/gpu"}},
		{"other hardware's plugins", []program{
			{name: "virt-handler", labels: map[string]string{"kubevirt.io": "virt-handler"}, mounts: []string{pluginsDir}, nodes: []string{"a"}},
			{name: "sriov", labels: map[string]string{"app": "sriovdp"}, mounts: []string{pluginsDir}, nodes: []string{"a"}},
			{name: "acme", mounts: []string{pluginsDir}, nodes: []string{"a"}},
		}, []string{"a devices.kubevirt.io/kvm=110 acme.io/npu=1"},
			[]string{"virt-handler device-plugin devices.kubevirt.io/kvm", "acme device-plugin acme.io/npu"}},
		{"two unknown ones: the one that runs only there", []program{
			{name: "everywhere", mounts: []string{pluginsDir}, nodes: []string{"a", "cpu"}},
			{name: "acme", mounts: []string{pluginsDir}, nodes: []string{"a"}},
		}, []string{"a acme.io/npu=1", "cpu"}, []string{"acme device-plugin acme.io/npu"}},
		{"two unknown ones that run only there", []program{
			{name: "x", mounts: []string{pluginsDir}, nodes: []string{"a"}},
			{name: "y", mounts: []string{pluginsDir}, nodes: []string{"a"}},
		}, []string{"a acme.io/npu=1"}, []string{"x device-plugin acme.io/npu guess", "y device-plugin acme.io/npu guess"}},
		{"a mount of something else", []program{{name: "x", mounts: []string{"/var/lib/kubelet/pod-resources", "/var/lib/kubelet"}, nodes: []string{"a"}}},
			[]string{"a nvidia.com/gpu=1"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range Detect(world(tt.programs, tt.nodes...)).Plugins {
				line := p.DaemonSet.Name + " " + string(p.Role) + " " + strings.Join(p.Resources, ",")
				if p.Guess {
					line += " guess"
				}
				got = append(got, line)
				if len(p.Evidence) == 0 {
					t.Errorf("%s: no evidence", p.DaemonSet.Name)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("plugins (-want +got):\n%s", diff)
			}
		})
	}
}

// When every pool has moved, an unknown plugin runs nowhere and nothing advertises
// what it served: the way back must not depend on either.
func TestDetectPluginAfterTheLastPool(t *testing.T) {
	t.Parallel()
	s := world([]program{{name: "acme", mounts: []string{pluginsDir}, a: requiring(term(absent(AllocationLabel)))}}, "a")
	state := cluster.NodeState{Pool: "p", Operation: "migrate", Run: "r", Resources: []string{"acme.io/npu", "acme.io/npu.small"}}
	raw, err := state.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s.Nodes[0].Labels = map[string]string{AllocationLabel: "dra"}
	s.Nodes[0].Annotations = map[string]string{StateAnnotation: raw}
	inv := Detect(s)
	found := inv.PluginsFor("acme.io/npu")
	if len(found) != 1 || found[0].DaemonSet.Name != "acme" {
		t.Fatalf("PluginsFor = %v, want acme", found)
	}
	if diff := cmp.Diff([]string{"acme.io/npu", "acme.io/npu.small"}, inv.ResourcesWith("acme.io/npu")); diff != "" {
		t.Errorf("ResourcesWith (-want +got):\n%s", diff)
	}
}

func TestInventory(t *testing.T) {
	t.Parallel()
	inv := Detect(world([]program{nvidiaPlugin("a"), {name: "amd", labels: map[string]string{"name": "amdgpu-dp-ds"}, mounts: []string{pluginsDir}, nodes: []string{"b"}}},
		"a nvidia.com/gpu=1 nvidia.com/gpu.shared=4", "b amd.com/gpu=1"))
	names := func(list []PluginDaemonSet) []string {
		var out []string
		for _, p := range list {
			out = append(out, p.DaemonSet.Name)
		}
		return out
	}
	if diff := cmp.Diff([]string{"nvidia-device-plugin-daemonset"}, names(inv.PluginsFor("nvidia.com/gpu"))); diff != "" {
		t.Errorf("PluginsFor nvidia.com/gpu (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"amd"}, names(inv.PluginsFor("amd.com/gpu"))); diff != "" {
		t.Errorf("PluginsFor amd.com/gpu (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"nvidia.com/gpu", "nvidia.com/gpu.shared"}, inv.ResourcesWith("nvidia.com/gpu")); diff != "" {
		t.Errorf("ResourcesWith nvidia.com/gpu (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"x.io/y"}, inv.ResourcesWith("x.io/y")); diff != "" {
		t.Errorf("ResourcesWith x.io/y (-want +got):\n%s", diff)
	}
}

func TestDetectIgnoresPodsOfAnOldDaemonSet(t *testing.T) {
	t.Parallel()
	s := world([]program{nvidiaPlugin("a", "b", "c")}, "a nvidia.com/gpu=1", "b", "c")
	s.Pods[1].Owner.UID = "of the DaemonSet that had this name before"
	s.Pods[2].Phase = corev1.PodFailed
	if diff := cmp.Diff([]string{"a"}, Detect(s).Plugins[0].Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestDetectDrivers(t *testing.T) {
	t.Parallel()
	const driver = "gpu.nvidia.com"
	nvidia := program{name: "dra-driver-nvidia-gpu-kubelet-plugin", labels: map[string]string{"dra-driver-nvidia-gpu-component": "kubelet-plugin"},
		image: "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1", mounts: []string{registryDir, "/var/run/cdi"}}
	csi := program{name: "csi", image: "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.13.0", mounts: []string{registryDir, "/var/run/cdi"}, nodes: []string{"a"}}
	own := func(mounts ...string) program {
		return program{name: "own", image: "acme/driver", mounts: append(mounts, registryDir), nodes: []string{"a"}}
	}
	placed := own()
	placed.a, placed.nodes = requiring(term(in(AllocationLabel, "dra"))), nil
	with := func(p program, nodes ...string) program { p.nodes = nodes; return p }
	for _, tt := range []struct {
		name     string
		programs []program
		slices   map[string]string // node → driver
		want     []string          // "name drivers"
		forOne   []string          // DriversFor(driver)
	}{
		{"the NVIDIA driver, on no node yet", []program{nvidia}, nil,
			[]string{"dra-driver-nvidia-gpu-kubelet-plugin compute-domain.nvidia.com,gpu.nvidia.com"}, []string{"dra-driver-nvidia-gpu-kubelet-plugin"}},
		{"a storage driver registers in the same folder", []program{csi}, map[string]string{"a": driver}, nil, nil},
		{"an unknown driver, by CDI and slices", []program{own("/etc/cdi"), csi}, map[string]string{"a": driver}, []string{"own gpu.nvidia.com"}, []string{"own"}},
		{"an unknown driver, by its folder and slices", []program{own("/var/lib/kubelet/plugins/gpu.nvidia.com")}, map[string]string{"a": driver},
			[]string{"own gpu.nvidia.com"}, []string{"own"}},
		{"slices of another node say nothing", []program{own("/etc/cdi")}, map[string]string{"b": driver}, nil, nil},
		{"a known driver's slices are its own", []program{with(nvidia, "a"), own("/etc/cdi")}, map[string]string{"a": driver},
			[]string{"dra-driver-nvidia-gpu-kubelet-plugin compute-domain.nvidia.com,gpu.nvidia.com"}, []string{"dra-driver-nvidia-gpu-kubelet-plugin"}},
		{"an unknown driver that the tool placed", []program{placed}, nil, []string{"own "}, []string{"own"}},
		{"a placed unknown driver whose slices name another", []program{func() program {
			p := placed
			p.mounts = append(p.mounts, "/etc/cdi")
			p.nodes = []string{"a"}
			return p
		}()},
			map[string]string{"a": "acme.io"}, []string{"own acme.io"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := world(tt.programs, "a", "b")
			for node, driver := range tt.slices {
				s.Slices = append(s.Slices, resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: ptr.To(node)}})
			}
			inv := Detect(s)
			var got, forOne []string
			for _, d := range inv.Drivers {
				got = append(got, d.DaemonSet.Name+" "+strings.Join(d.DriverNames, ","))
			}
			for _, d := range inv.DriversFor(driver) {
				forOne = append(forOne, d.DaemonSet.Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("drivers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.forOne, forOne); diff != "" {
				t.Errorf("DriversFor %s (-want +got):\n%s", driver, diff)
			}
		})
	}
}
