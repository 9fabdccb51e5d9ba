package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

// The names that a ResourceQuota counts claims by (pkg/quota/v1/evaluator/core/
// resource_claims.go, v1.37.2).
const (
	quotaClaims        = "count/resourceclaims.resource.k8s.io"
	quotaClassDevices  = corev1.ResourceClaimsPerClass                 // behind the class's name
	quotaClassRequests = corev1.ResourceImplicitExtendedClaimsPerClass // before it
	quotaRequests      = corev1.DefaultResourceRequestsPrefix          // before the resource's
	claimsInQuotaMinor = 35                                            // requests.* count claims from 1.35 on
	nearlyFullPercent  = 90
	claimsAreManyFrom  = 100
)

func drm130() Check {
	return Check{
		Code:       "DRM130",
		Title:      "A quota counts the claims that the move adds",
		Why:        "Each pod that DRA serves has a claim of its own, made by the scheduler in the pod's namespace. Quotas of claims and of a class's devices count it. Where one is full the pod is not refused when it is made, as with a quota of pods: it waits, because the scheduler may not make its claim.",
		Fix:        "Raise the quota by what the move adds.",
		Sources:    []string{"pkg/quota/v1/evaluator/core/resource_claims.go, v1.37.2", "kubernetes/kubernetes#134210", "Kubernetes docs, \"Resource Quotas\""},
		Operations: []string{Migrate, MigrateFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims, cluster.PartClasses, cluster.PartQuotas, cluster.PartVersion},
		Run: func(in Input) []Finding {
			minor, known := in.serverMinor()
			added := in.addedClaims()
			var out []Finding
			for i := range in.Snapshot.Quotas {
				q := &in.Snapshot.Quotas[i]
				more, concerned := added[q.Namespace]
				if !concerned || scoped(q) {
					continue
				}
				for _, key := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
					name := string(key)
					var n int64
					if name == quotaClaims {
						n = more.claims
					} else if class, ok := strings.CutSuffix(name, quotaClassDevices); ok {
						n = more.devices[class]
					} else if class, ok := strings.CutPrefix(name, quotaClassRequests); ok && (!known || minor >= claimsInQuotaMinor) {
						n = more.devices[class]
					}
					if f, ok := limited(q, key, n, "the scheduler may not make their claims, and they wait"); ok {
						f.Code = "DRM130"
						out = append(out, f)
					}
				}
			}
			return out
		},
	}
}

// claimCount is what the pods of a namespace add.
type claimCount struct {
	claims  int64
	devices map[string]int64 // by class
}

// addedClaims are the claims that the pods of the operation's nodes will have once they
// are made again, by namespace: one for each pod.
func (in Input) addedClaims() map[string]claimCount {
	class := in.className()
	out := map[string]claimCount{}
	for _, p := range in.movers() {
		c := out[p.Namespace]
		if c.devices == nil {
			c.devices = map[string]int64{}
		}
		c.claims++
		for _, r := range in.Resources {
			of := class
			if r != in.Resource {
				of = ""
				if other, _ := in.Snapshot.ClassFor(r); other != nil {
					of = other.Name
				}
			}
			if of != "" {
				c.devices[of] += p.DevicesNeeded(r)
			}
		}
		out[p.Namespace] = c
	}
	return out
}

// className is the class that maps the resource, or will; empty if that is not known.
func (in Input) className() string {
	if class, _ := in.Snapshot.ClassFor(in.Resource); class != nil {
		return class.Name
	}
	return in.NewClass
}

// scoped says that a quota is for pods of a scope: claims have none, and it counts none.
func scoped(q *corev1.ResourceQuota) bool {
	return len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil
}

// limited is what to say about one limit of a quota to whose use the move adds n.
func limited(q *corev1.ResourceQuota, key corev1.ResourceName, n int64, otherwise string) (Finding, bool) {
	if n == 0 {
		return Finding{}, false
	}
	hard, used := q.Spec.Hard[key], q.Status.Used[key]
	limit, then := hard.Value(), used.Value()+n
	f := Finding{
		Severity: Warning, Object: "resourcequota/" + q.Namespace + "/" + q.Name,
		Message: fmt.Sprintf("allows %d of %s; %d are in use and the pods of the pool add %d: %d", limit, key, used.Value(), n, then),
		Remedy:  "raise it first: " + raise(q, key, then),
	}
	switch {
	case then > limit:
		f.Severity = Blocker
		f.Message += " is more than it allows, so " + otherwise
	case then*100 > limit*nearlyFullPercent:
		f.Message += fmt.Sprintf(", above %d %% of it", nearlyFullPercent)
	default:
		return Finding{}, false
	}
	return f, true
}

// raise is the command that gives a quota room for then, with a tenth to spare.
func raise(q *corev1.ResourceQuota, key corev1.ResourceName, then int64) string {
	limit := (then*100 + nearlyFullPercent - 1) / nearlyFullPercent
	return fmt.Sprintf("`kubectl patch resourcequota %s -n %s --type merge -p %s`",
		q.Name, q.Namespace, words.Quoted(fmt.Sprintf(`{"spec":{"hard":{%q:"%d"}}}`, string(key), limit)))
}
