package checks

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// longGrace is a grace period that is worth knowing of before a window is planned.
const longGrace = 5 * time.Minute

func drm111() Check {
	return Check{
		Code:       "DRM111",
		Title:      "Pods may take long to end",
		Why:        "An evicted pod may use its whole terminationGracePeriodSeconds. The drain waits for it, up to its deadline, and the node is out of use meanwhile.",
		Fix:        "Give the drain a longer deadline than the longest grace period, or shorten that.",
		Sources:    []string{"k8s.io/api/core/v1, PodSpec.TerminationGracePeriodSeconds", "KEP-5004"},
		Advises:    true,
		Operations: []string{Migrate, Rollback, MigrateFrom, RollbackFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			over, long := ownerGroups{}, ownerGroups{}
			for _, v := range in.targets() {
				for _, p := range in.evictions(v) {
					grace := time.Duration(ptr.Deref(p.GracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)) * time.Second
					switch {
					case in.DrainTimeout > 0 && grace >= in.DrainTimeout:
						over.add(&p, fmt.Sprintf("may take %s to end, and the drain gives up after %s", grace, in.DrainTimeout))
					case grace > longGrace:
						long.add(&p, fmt.Sprintf("may take %s to end", grace))
					}
				}
			}
			return append(
				over.findings(Finding{Code: "DRM111", Severity: Warning, Remedy: "raise --drain-timeout above its grace period, or the run stops at this node and has to be started again"}),
				long.findings(Finding{Code: "DRM111", Severity: Warning, Remedy: "plan the window for it, with a --drain-timeout above its grace period"})...)
		},
	}
}
