package checks

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm131() Check {
	return Check{
		Code:       "DRM131",
		Title:      "A quota of the resource counts claims as well",
		Why:        "From Kubernetes 1.35 on a quota of requests of the resource counts, beside pods, the claims that people make of the class that maps it. A generated claim is not counted twice. In a namespace that uses both, the limit may be passed by the mapping alone; then a pod that the drain evicts is refused when it is made again.",
		Fix:        "Raise the quota by the devices of the claims.",
		Sources:    []string{"pkg/quota/v1/evaluator/core/resource_claims.go, addExtendedResourceQuota, v1.35.4 to v1.37.2"},
		Operations: []string{Migrate, MigrateFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims, cluster.PartClasses, cluster.PartQuotas, cluster.PartVersion},
		Run: func(in Input) []Finding {
			if minor, known := in.serverMinor(); known && minor < claimsInQuotaMinor {
				return nil
			}
			moving := map[string]bool{}
			for _, p := range in.movers() {
				moving[p.Namespace] = true
			}
			claimed, asked := in.claimedDevices(), in.askedDevices()
			key := corev1.ResourceName(quotaRequests + in.Resource)
			var out []Finding
			for i := range in.Snapshot.Quotas {
				q := &in.Snapshot.Quotas[i]
				hard, limits := q.Spec.Hard[key]
				byClaims, byPods := claimed[q.Namespace], asked[q.Namespace]
				then := byClaims + byPods
				if !limits || scoped(q) || byClaims == 0 || then*100 <= hard.Value()*nearlyFullPercent {
					continue
				}
				f := Finding{
					Code: "DRM131", Severity: Warning, Object: "resourcequota/" + q.Namespace + "/" + q.Name,
					Message: fmt.Sprintf("allows %d of %s: pods ask for %d, and claims of the class that maps the name count for %d more: %d",
						hard.Value(), key, byPods, byClaims, then),
					Remedy: "raise it first: " + raise(q, key, then),
				}
				if then > hard.Value() {
					f.Message += " is more than it allows"
					if moving[q.Namespace] {
						f.Severity = Blocker
						f.Message += ", so that pods that the drain evicts are refused when they are made again"
					}
				} else {
					f.Message += fmt.Sprintf(", above %d %% of it", nearlyFullPercent)
				}
				out = append(out, f)
			}
			return out
		},
	}
}

// askedDevices are the devices that pods ask for, by namespace.
func (in Input) askedDevices() map[string]int64 {
	out := map[string]int64{}
	for i := range in.Snapshot.Pods {
		if p := &in.Snapshot.Pods[i]; !p.Finished() {
			if n := p.DevicesNeeded(in.Resource); n > 0 {
				out[p.Namespace] += n
			}
		}
	}
	return out
}

// claimedDevices are the devices that claims of the classes with the resource's name may
// have, by namespace, as a quota counts them. Those that the scheduler makes are left out.
func (in Input) claimedDevices() map[string]int64 {
	classes := map[string]bool{}
	if in.NewClass != "" {
		classes[in.NewClass] = true
	}
	for i := range in.Snapshot.Classes {
		if name := in.Snapshot.Classes[i].Spec.ExtendedResourceName; name != nil && *name == in.Resource {
			classes[in.Snapshot.Classes[i].Name] = true
		}
	}
	out := map[string]int64{}
	for i := range in.Snapshot.Claims {
		c := &in.Snapshot.Claims[i]
		if c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
			continue
		}
		for _, r := range c.Spec.Devices.Requests {
			if n := devicesAsked(&r, classes); n > 0 {
				out[c.Namespace] += n
			}
		}
	}
	return out
}

// devicesAsked is the worst case of one request, which is what quotas count.
func devicesAsked(r *resourcev1.DeviceRequest, classes map[string]bool) int64 {
	count := func(class string, mode resourcev1.DeviceAllocationMode, n int64) int64 {
		switch {
		case !classes[class]:
			return 0
		case mode == resourcev1.DeviceAllocationModeAll:
			return resourcev1.AllocationResultsMaxSize
		default:
			return n
		}
	}
	if r.Exactly != nil {
		return count(r.Exactly.DeviceClassName, r.Exactly.AllocationMode, r.Exactly.Count)
	}
	worst := map[string]int64{}
	var sum int64
	for _, s := range r.FirstAvailable {
		n := count(s.DeviceClassName, s.AllocationMode, s.Count)
		sum += max(0, n-worst[s.DeviceClassName])
		worst[s.DeviceClassName] = max(n, worst[s.DeviceClassName])
	}
	return sum
}
