package checks

import (
	"cmp"
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// granularMinor is the minor version since which the API server asks for a right of its
// own for what drivers write into claims: the feature gate
// DRAResourceClaimGranularStatusAuthorization, beta and on (pkg/features/kube_features.go,
// v1.36.3).
const granularMinor = 36

func drm097() Check {
	return Check{
		Code:       "DRM097",
		Title:      "Whether the driver may report in claims is not known",
		Why:        "Since Kubernetes 1.36 a driver that writes into ResourceClaim status.devices needs the verb associated-node:update (or :patch, as it writes; or arbitrary-node: in the place of associated-node:) on resourceclaims/driver, by its own name as the resource's name; the right to resourceclaims/status alone is no longer enough. Charts from before have no such rule. A driver that reports nothing there misses nothing; one that does is refused, and some then fail to prepare the claim, so that its pod does not start. What a driver's service account may do is shown to nobody without the right to ask for others, which this tool does not want.",
		Fix:        "See what the driver's service account may do; if it has no such right and the driver reports in claims, upgrade its chart, or add the rule to its ClusterRole.",
		Sources:    []string{"kubernetes/kubernetes#134947, #138149", "KEP-4817", "pkg/registry/resource/utils.go, AuthorizedForDeviceStatus, v1.37.2", "cilium/cilium#48911"},
		Advises:    true,
		Operations: []string{Migrate, MigrateInto},
		Needs:      []string{cluster.PartVersion, cluster.PartDaemonSets},
		Run: func(in Input) []Finding {
			// Feature gates have the defaults of the version that the server emulates.
			if asks, err := since(acts(in.Snapshot.Identity), granularMinor); !asks || err != nil || !in.HasTargets() {
				return nil // DRM001 is about a version that cannot be read
			}
			var out []Finding
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				ds := d.DaemonSet
				account := cmp.Or(ds.Spec.Template.Spec.ServiceAccountName, "default")
				out = append(out, Finding{
					Code: "DRM097", Severity: Info, Object: daemonSetObject(ds),
					Message: fmt.Sprintf("runs as serviceaccount %s: whether that may write status.devices of claims cannot be known from here; since Kubernetes 1.%d it takes a right of its own, which older charts do not grant",
						account, granularMinor),
					Remedy: fmt.Sprintf("look for resourceclaims.resource.k8s.io/driver and %s in `kubectl auth can-i --list --as system:serviceaccount:%s:%s`, with associated-node: or arbitrary-node: before update or patch; it matters only to a driver that reports in claims",
						in.Driver, ds.Namespace, account),
				})
			}
			return out
		},
	}
}
