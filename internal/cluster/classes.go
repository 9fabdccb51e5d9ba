package cluster

import (
	"cmp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// ClassFor finds the DeviceClass that maps an extended resource: of several, the
// one made last, and of those made in the same second the one whose name sorts
// first (k8s.io/api/resource/v1, DeviceClassSpec.ExtendedResourceName). The others
// carry the name too; up to Kubernetes 1.37 removing any of them loses the mapping
// (kubernetes/kubernetes#141103). The winner is nil if no class carries the name.
func (s *Snapshot) ClassFor(resource string) (winner *resourcev1.DeviceClass, others []resourcev1.DeviceClass) {
	var all []resourcev1.DeviceClass
	for i := range s.Classes {
		if name := s.Classes[i].Spec.ExtendedResourceName; name != nil && *name == resource {
			all = append(all, s.Classes[i])
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortFunc(all, func(a, b resourcev1.DeviceClass) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return &all[0], all[1:]
}

// KeepsMapping says that the scheduler keeps the mapping of an extended resource when
// one of several classes with its name goes: since Kubernetes 1.38
// (kubernetes/kubernetes#141110). The scheduler is taken to be of the API server's
// version, as it is but for the minutes of an upgrade.
func (s *Snapshot) KeepsMapping() bool {
	v, err := version.ParseGeneric(s.Identity.ServerVersion)
	return err == nil && v.AtLeast(version.MajorMinor(1, 38))
}
