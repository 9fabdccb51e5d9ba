package checks

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/version"
)

// serverMinor is the minor version of Kubernetes 1 by which the control plane acts: what
// it emulates, if it does. False if it cannot be read.
func (in Input) serverMinor() (uint, bool) {
	id := in.Snapshot.Identity
	v, err := version.ParseGeneric(cmp.Or(id.EmulationVersion, id.ServerVersion))
	if err != nil || v.Major() != 1 {
		return 0, false
	}
	return v.Minor(), true
}
