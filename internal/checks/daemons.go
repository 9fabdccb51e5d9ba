package checks

import (
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// nvidia says that the resource is one of NVIDIA's, whose operator, charts and labels
// some checks are about.
func (in Input) nvidia() bool { return strings.HasPrefix(in.Resource, "nvidia.com/") }

// daemonPods are the pods of each of the DaemonSets, by name; the pods of the cluster are
// gone through once.
func (in Input) daemonPods(sets ...*appsv1.DaemonSet) map[*appsv1.DaemonSet][]*cluster.Pod {
	type key struct{ namespace, name string }
	wanted := map[key]*appsv1.DaemonSet{}
	for _, ds := range sets {
		wanted[key{ds.Namespace, ds.Name}] = ds
	}
	out := map[*appsv1.DaemonSet][]*cluster.Pod{}
	if len(wanted) == 0 {
		return out
	}
	for i := range in.Snapshot.Pods {
		p := &in.Snapshot.Pods[i]
		if p.Owner.Kind != "DaemonSet" || p.Node == "" || p.Finished() {
			continue
		}
		if ds := wanted[key{p.Namespace, p.Owner.Name}]; ds != nil && (ds.UID == "" || ds.UID == p.Owner.UID) {
			out[ds] = append(out[ds], p)
		}
	}
	return out
}

// among looks a node up in a sorted list, as an inventory's are.
func among(sorted []string, node string) bool {
	_, ok := slices.BinarySearch(sorted, node)
	return ok
}

// daemonSets are those of the cluster that satisfy is.
func (in Input) daemonSets(is func(*appsv1.DaemonSet) bool) []*appsv1.DaemonSet {
	var out []*appsv1.DaemonSet
	for i := range in.Snapshot.DaemonSets {
		if ds := &in.Snapshot.DaemonSets[i]; is(ds) {
			out = append(out, ds)
		}
	}
	return out
}

// containersOf are the containers of a DaemonSet's pods, those first that come first.
func containersOf(ds *appsv1.DaemonSet) []corev1.Container {
	return slices.Concat(ds.Spec.Template.Spec.InitContainers, ds.Spec.Template.Spec.Containers)
}

// hasContainer says that a DaemonSet's pods have a container of that name.
func hasContainer(ds *appsv1.DaemonSet, name string) bool {
	return slices.ContainsFunc(containersOf(ds), func(c corev1.Container) bool { return c.Name == name })
}

// envOf is the first value that a container of the DaemonSet, or the one that is named,
// gives to a variable.
func envOf(ds *appsv1.DaemonSet, container, variable string) string {
	for _, c := range containersOf(ds) {
		if container != "" && c.Name != container {
			continue
		}
		for _, e := range c.Env {
			if e.Name == variable && e.Value != "" {
				return e.Value
			}
		}
	}
	return ""
}

// hostFolder is the folder of the host, mounted by the DaemonSet's pods, whose name
// ends so; empty if there is none.
func hostFolder(ds *appsv1.DaemonSet, name string) string {
	for i := range ds.Spec.Template.Spec.Volumes {
		if h := ds.Spec.Template.Spec.Volumes[i].HostPath; h != nil && path.Base(path.Clean(h.Path)) == name {
			return path.Clean(h.Path)
		}
	}
	return ""
}

// templateLabel is a label of the DaemonSet's pods, or of the DaemonSet.
func templateLabel(ds *appsv1.DaemonSet, key string) string {
	if v := ds.Spec.Template.Labels[key]; v != "" {
		return v
	}
	return ds.Labels[key]
}

func imagesOf(ds *appsv1.DaemonSet) []string {
	var out []string
	for _, c := range containersOf(ds) {
		out = append(out, c.Image)
	}
	return out
}

// kernelDriver recognises the DaemonSets by which NVIDIA's operator brings the kernel
// driver: that of a ClusterPolicy, and those of NVIDIADriver objects
// (NVIDIA/gpu-operator, assets/state-driver, manifests/state-driver).
func kernelDriver(ds *appsv1.DaemonSet) bool {
	return templateLabel(ds, "app") == "nvidia-driver-daemonset" || templateLabel(ds, "app.kubernetes.io/component") == "nvidia-driver"
}

// toolkit recognises the DaemonSet by which it brings the container toolkit.
func toolkit(ds *appsv1.DaemonSet) bool {
	return templateLabel(ds, "app") == "nvidia-container-toolkit-daemonset"
}

// stops is Blocker for a migration, which would fail, and Warning for what comes before
// it or leads away from it.
func (in Input) stops() Severity {
	if in.Operation == Migrate || in.Operation == MigrateFrom || in.Operation == MigrateInto {
		return Blocker
	}
	return Warning
}
