package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm132() Check {
	return Check{
		Code:       "DRM132",
		Title:      "The move adds many ResourceClaims",
		Why:        "Each pod that DRA serves has a claim. They are ordinary objects of the pods' namespaces: they are in etcd, in lists and watches of claims, in backups, and policies and webhooks on claims see the scheduler make them.",
		Fix:        "See that webhooks and policies on resourceclaims let the scheduler's claims pass, and that what lists claims can take as many.",
		Sources:    []string{"pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, v1.37.2", "KEP-5004"},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			pods := int64(0)
			added := in.addedClaims()
			for _, c := range added {
				pods += c.claims
			}
			if pods < claimsAreManyFrom {
				return nil
			}
			return []Finding{{
				Code: "DRM132", Severity: Info, Object: in.poolObject(),
				Message: fmt.Sprintf("the pods of the pool will have %d ResourceClaims in %d namespaces; the cluster has %d now", pods, len(added), len(in.Snapshot.Claims)),
				Remedy:  "see `kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies -o yaml` for rules on resourceclaims: they have to let user system:kube-scheduler make claims",
			}}
		},
	}
}
