package checks

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm106() Check {
	return Check{
		Code:       "DRM106",
		Title:      "Workloads rely on preemption for devices",
		Why:        "A node on which DRA finds no free device is, to kube-scheduler, one that no preemption would help, in every version up to 1.38. On a switched pool a pod of high priority waits until a device is free; it displaces nobody for one.",
		Fix:        "Keep room for these workloads on the pool, by a quota or a pool of their own, or let a queue such as Kueue preempt before pods are made.",
		Sources:    []string{"pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, v1.34 to v1.38", "pkg/scheduler/framework/preemption/preemption.go, v1.37.2", "KEP-5690"},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom},
		Needs:      append(workloadParts(), cluster.PartPods, cluster.PartClaims, cluster.PartPriorityClasses),
		Run: func(in Input) []Finding {
			value := map[string]int32{}
			for _, c := range in.Snapshot.PriorityClasses {
				value[c.Name] = c.Value
			}
			priority := func(p *cluster.Pod) int32 {
				if p.Priority != nil {
					return *p.Priority
				}
				return value[p.PriorityClass]
			}
			var lowest *int32
			for i := range in.Snapshot.Pods {
				if p := &in.Snapshot.Pods[i]; p.Node != "" && !p.Finished() && p.Asks(in.Resource) {
					if v := priority(p); lowest == nil || v < *lowest {
						lowest = &v
					}
				}
			}
			if lowest == nil {
				return nil
			}
			return in.askers(func(p *cluster.Pod) string {
				mine := priority(p)
				if mine <= *lowest || p.PreemptionPolicy == corev1.PreemptNever {
					return ""
				}
				return fmt.Sprintf("has priority %d, above that of other pods with %s (%d): on a switched node it displaces none of them", mine, in.Resource, *lowest)
			}).findings(Finding{
				Code: "DRM106", Severity: Warning,
				Remedy: "keep devices free for it, or give it a pool of its own; `kubectl get pods -A --sort-by=.spec.priority` shows the others",
			})
		},
	}
}
