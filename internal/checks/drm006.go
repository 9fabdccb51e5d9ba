package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm006() Check {
	return Check{
		Code:       "DRM006",
		Title:      "A pod combines a ResourceClaim with the extended resource",
		Why:        "While a class maps the resource, the scheduler cannot bind a pod that has a claim of its own and a request for the resource to a node with the plugin: it makes a claim without requests and fails on it, again and again, on every pool of the cluster. Pods that run already are not touched.",
		Fix:        "Let the workload get all its devices from claims, or keep it by its node selector to pools that are on DRA, where both are served.",
		Sources:    []string{"pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, patchPodExtendedResourceClaimStatus, v1.35 to v1.38"},
		Operations: []string{Prepare, Migrate, MigrateInto, Verify},
		Mapping:    true,
		Needs:      []string{cluster.PartPods, cluster.PartClasses, cluster.PartClaims},
		Run: func(in Input) []Finding {
			winner, _ := in.Snapshot.ClassFor(in.Resource)
			f := Finding{
				Code: "DRM006", Severity: Blocker,
				Remedy: "change the workload to get all its devices from claims, or keep it by its node selector to pools that are on DRA, where both are served",
			}
			evidence := fmt.Sprintf("uses a ResourceClaim and asks for %s: once a DeviceClass maps that name, no such pod can be bound to a node of any pool that still has the plugin", in.Resource)
			switch {
			case winner != nil:
				f.Severity = Warning
				evidence = fmt.Sprintf("uses a ResourceClaim and asks for %s, which deviceclass/%s maps already: when it is made again it cannot be bound to a node that still has the plugin", in.Resource, winner.Name)
			case in.Operation == Prepare:
				// Prepare does not make the mapping; the first node's migration does.
				f.Severity = Warning
			}
			g := ownerGroups{}
			for i := range in.Snapshot.Pods {
				p := &in.Snapshot.Pods[i]
				if !p.Finished() && len(p.Claims) > 0 && p.Asks(in.Resource) && !cluster.BridgeBacked(p, in.Resource, in.Snapshot.Claims) {
					g.add(p, evidence)
				}
			}
			return g.findings(f)
		},
	}
}
