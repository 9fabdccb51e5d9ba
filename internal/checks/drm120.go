package checks

import (
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm120() Check {
	return Check{
		Code:       "DRM120",
		Title:      "Pods have finalizers that somebody has to take off",
		Why:        "An evicted pod with a finalizer ends, but its object stays until whoever set the finalizer removes it. The drain waits for the object to go, because a pod that is Terminating may hold a device.",
		Fix:        "See that the controller that the finalizer names runs; never take a finalizer off that guards data.",
		Sources:    []string{"Kubernetes docs, \"Finalizers\"", "k8s.io/apimachinery/pkg/apis/meta/v1, ObjectMeta.Finalizers"},
		Advises:    true,
		Operations: []string{Migrate, Rollback, MigrateFrom, RollbackFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			g := ownerGroups{}
			for _, v := range in.targets() {
				for _, p := range in.evictions(v) {
					foreign := slices.DeleteFunc(slices.Clone(p.Finalizers), ownFinalizer)
					if len(foreign) > 0 {
						g.add(&p, "has finalizer "+few(foreign)+": it stays Terminating until the controller of that takes it off")
					}
				}
			}
			return g.findings(Finding{Code: "DRM120", Severity: Warning, Remedy: "see that this controller runs before the node's turn"})
		},
	}
}

// ownFinalizer says that Kubernetes or Kueue takes a finalizer off by itself as soon as
// the pod has ended.
func ownFinalizer(name string) bool {
	return slices.Contains([]string{
		"batch.kubernetes.io/job-tracking", // k8s.io/api/batch/v1, JobTrackingFinalizer
		"foregroundDeletion", "orphan",     // of the garbage collector
		"kueue.x-k8s.io/managed", // kubernetes-sigs/kueue, pkg/controller/jobs/pod
	}, name)
}
