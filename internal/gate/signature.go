package gate

import (
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/vendor"
)

// signature is what a known plugin or driver is recognised by. It never suffices:
// what the pods do has to fit as well, because GPU Feature Discovery, for one, has
// the plugin's image and labels.
type signature struct {
	// labels are alternatives, of the pod template or of the DaemonSet.
	labels map[string]string
	// images are alternatives: the end of an image's repository.
	images []string
	// resources are prefixes of the extended resources of a plugin.
	resources []string
	// drivers are the DRA names of a driver.
	drivers []string
	// containers are the names of the containers that serve one DRA name each, where
	// the program has several and its installation may leave some out.
	containers map[string]string
}

// signatures are those of a vendor's program.
func signatures(p vendor.Program) []signature {
	base := signature{images: p.Images, resources: p.Resources, drivers: p.Drivers, containers: p.Containers}
	out := []signature{base}
	for _, l := range p.Labels {
		s := base
		s.labels, s.images = map[string]string{l.Key: l.Value}, nil
		out = append(out, s)
	}
	return out
}

// pluginSignatures are the device plugins that the tool knows.
func pluginSignatures() []signature {
	var out []signature
	for _, v := range vendor.All() {
		for _, p := range v.Plugins {
			out = append(out, signatures(p)...)
		}
	}
	// Plugins of other hardware: known, so that they are not taken for a GPU's.
	for _, p := range []vendor.Program{
		{Images: []string{"kubevirt/virt-handler"}, Labels: []vendor.Label{{Key: "kubevirt.io", Value: "virt-handler"}}, Resources: []string{"devices.kubevirt.io/"}},
		{
			Images: []string{"sriov-network-device-plugin", "k8s-rdma-shared-dev-plugin"},
			Labels: []vendor.Label{{Key: "name", Value: "sriov-device-plugin"}, {Key: "name", Value: "rdma-shared-dp-ds"}, {Key: "app", Value: "sriovdp"}},
		},
	} {
		out = append(out, signatures(p)...)
	}
	return out
}

// driverSignatures are the DRA drivers that the tool knows.
func driverSignatures() []signature {
	var out []signature
	for _, v := range vendor.All() {
		for _, p := range v.Drivers {
			out = append(out, signatures(p)...)
		}
	}
	return out
}

// recognise finds the first known program whose label or image the DaemonSet has,
// and says which of them it was.
func recognise(ds *appsv1.DaemonSet, known []signature) (signature, string, bool) {
	for _, s := range known {
		for key, value := range s.labels {
			if ds.Spec.Template.Labels[key] == value || ds.Labels[key] == value {
				return s, "label " + key + "=" + value, true
			}
		}
		for _, image := range images(ds) {
			for _, suffix := range s.images {
				if repo := repository(image); repo == suffix || strings.HasSuffix(repo, "/"+suffix) {
					return s, "image " + image, true
				}
			}
		}
	}
	return signature{}, "", false
}

// lacks are the DRA names whose container a DaemonSet has not, while it has that of
// another; nothing is known of one that has none of them.
func (s signature) lacks(ds *appsv1.DaemonSet) []string {
	var out []string
	for _, driver := range slices.Sorted(maps.Keys(s.containers)) {
		if !slices.ContainsFunc(containers(ds), func(c corev1.Container) bool { return c.Name == s.containers[driver] }) {
			out = append(out, driver)
		}
	}
	if len(out) == len(s.containers) {
		return nil
	}
	return out
}

// serves says whether a resource is one of the program's.
func (s signature) serves(resource string) bool {
	return slices.ContainsFunc(s.resources, func(prefix string) bool { return strings.HasPrefix(resource, prefix) })
}

func images(ds *appsv1.DaemonSet) []string {
	var out []string
	for _, c := range containers(ds) {
		out = append(out, c.Image)
	}
	return out
}

func containers(ds *appsv1.DaemonSet) []corev1.Container {
	return slices.Concat(ds.Spec.Template.Spec.InitContainers, ds.Spec.Template.Spec.Containers)
}

// repository is an image's name without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	slash := strings.LastIndex(image, "/")
	if colon := strings.LastIndex(image, ":"); colon > slash {
		image = image[:colon]
	}
	return image
}

// hostPath finds a volume of the host whose folder satisfies is.
func hostPath(ds *appsv1.DaemonSet, is func(clean string) bool) (string, bool) {
	for i := range ds.Spec.Template.Spec.Volumes {
		if h := ds.Spec.Template.Spec.Volumes[i].HostPath; h != nil && is(path.Clean(h.Path)) {
			return h.Path, true
		}
	}
	return "", false
}

// endsIn accepts a folder of that name below any kubelet root.
func endsIn(folder string) func(string) bool {
	return func(p string) bool { return path.Base(p) == folder }
}
