package checks

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm108() Check {
	return Check{
		Code:       "DRM108",
		Title:      "Devices may be aligned with CPUs now",
		Why:        "The kubelet's Topology Manager gives a Guaranteed pod its CPUs, memory and plugin devices from one NUMA node, if its policy says so. DRA takes no part in that. The policy is the kubelet's own and cannot be seen in the API, so it is not known whether anything is lost.",
		Fix:        "Look at the policy. If it is not none, measure a workload on the first switched node.",
		Sources:    []string{"pkg/kubelet/cm/container_manager_linux.go, v1.37.2", "Kubernetes docs, \"Control Topology Management Policies on a node\""},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom},
		Needs:      append(workloadParts(), cluster.PartPods, cluster.PartClaims),
		Run: func(in Input) []Finding {
			g := in.askers(func(p *cluster.Pod) string {
				if !p.Guaranteed {
					return ""
				}
				return "guaranteed"
			})
			if len(g) == 0 {
				return nil
			}
			var owners []string
			for _, k := range slices.SortedFunc(maps.Keys(g), compareOwners) {
				owners = append(owners, k.object())
			}
			return []Finding{{
				Code: "DRM108", Severity: Info, Object: in.poolObject(),
				Message: fmt.Sprintf("%s are of QoS class Guaranteed: with a Topology Manager policy other than none, which cannot be seen from here, their GPUs are near their CPUs now, and by DRA no longer", few(owners)),
				Remedy:  "see `kubectl get --raw /api/v1/nodes/" + in.oneNode() + "/proxy/configz` for topologyManagerPolicy",
			}}
		},
	}
}

// oneNode is one of the operation's nodes, for a command to look at.
func (in Input) oneNode() string {
	for _, v := range in.targets() {
		return v.Node.Name
	}
	return "NODE"
}
