package nodeprobe

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/gpuid"
)

// APIView is what the API server has about one node. A nil list was not given, and what
// it would tell is unknown; an empty one says that there is none.
type APIView struct {
	// Slices are those of the node, of every driver.
	Slices []resourcev1.ResourceSlice
	// Claims are those that may be allocated on the node.
	Claims []resourcev1.ResourceClaim
	// Pods are those bound to the node.
	Pods []corev1.Pod
}

// mirrorAnnotation is, on the API's image of a static pod, the UID that the kubelet
// knows the pod by (k8s.io/kubernetes/pkg/kubelet/types, ConfigMirrorAnnotationKey).
const mirrorAnnotation = "kubernetes.io/config.mirror"

// podNames are the pods that the API has.
type podNames struct {
	// name is "namespace/name" by UID.
	name map[string]string
	// ended are the UIDs of pods whose containers have all ended for good.
	ended map[string]bool
}

func podsOf(api *APIView) podNames {
	out := podNames{map[string]string{}, map[string]bool{}}
	for i := range api.Claims {
		c := &api.Claims[i]
		for _, by := range c.Status.ReservedFor {
			if by.Resource == "pods" && by.APIGroup == "" {
				out.name[string(by.UID)] = c.Namespace + "/" + by.Name
			}
		}
	}
	for i := range api.Pods {
		p := &api.Pods[i]
		for _, uid := range []string{string(p.UID), p.Annotations[mirrorAnnotation]} {
			if uid != "" {
				out.name[uid] = p.Namespace + "/" + p.Name
				out.ended[uid] = p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
			}
		}
	}
	return out
}

// pool is what one driver publishes in one pool: the devices of the newest generation.
type pool struct {
	driver, name string
	devices      []published
	// incomplete says what is missing; empty if the scheduler would allocate from it.
	incomplete string
}

type published struct {
	triplet    Device
	attributes gpuid.Attributes
	product    string
	profile    string
}

// newestSlices gathers the slices that concern the node, pool by pool. Those of another
// node that a caller gives by mistake are left out.
func newestSlices(list []resourcev1.ResourceSlice, node string) []pool {
	type key struct{ driver, pool string }
	members := map[key][]*resourcev1.ResourceSlice{}
	for i := range list {
		s := &list[i]
		if s.Spec.NodeName != nil && *s.Spec.NodeName != "" && *s.Spec.NodeName != node {
			continue
		}
		k := key{s.Spec.Driver, s.Spec.Pool.Name}
		switch known := members[k]; {
		case len(known) == 0 || s.Spec.Pool.Generation > known[0].Spec.Pool.Generation:
			members[k] = []*resourcev1.ResourceSlice{s}
		case s.Spec.Pool.Generation == known[0].Spec.Pool.Generation:
			members[k] = append(known, s)
		}
	}
	var out []pool
	for k, newest := range members {
		p := pool{driver: k.driver, name: k.pool}
		if want := newest[0].Spec.Pool.ResourceSliceCount; int64(len(newest)) != want {
			p.incomplete = fmt.Sprintf("pool %s of driver %s has %d of %d ResourceSlices of generation %d",
				k.pool, k.driver, len(newest), want, newest[0].Spec.Pool.Generation)
		}
		for _, s := range newest {
			for i := range s.Spec.Devices {
				p.devices = append(p.devices, publishedBy(k.driver, k.pool, &s.Spec.Devices[i]))
			}
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b pool) int {
		return compareDevices(Device{Driver: a.driver, Pool: a.name}, Device{Driver: b.driver, Pool: b.name})
	})
	return out
}

// pciAttributes are the names by which drivers publish a PCI address: the standard one,
// and those of AMD's and Intel's drivers.
func pciAttributes() []string {
	return []string{"resource.kubernetes.io/pciBusID", "pciBusID", "pciAddr", "pciAddress"}
}

func publishedBy(driver, poolName string, d *resourcev1.Device) published {
	text := func(names ...string) string {
		for _, name := range names {
			for _, key := range []string{name, driver + "/" + name} {
				if a, ok := d.Attributes[resourcev1.QualifiedName(key)]; ok && a.StringValue != nil {
					return *a.StringValue
				}
			}
		}
		return ""
	}
	return published{
		triplet: Device{Driver: driver, Pool: poolName, Name: d.Name},
		attributes: gpuid.Attributes{
			Type: text("type"), UUID: text("uuid"), ParentUUID: text("parentUUID"), PCIBusID: text(pciAttributes()...),
		},
		product: text("productName"), profile: text("profile"),
	}
}
