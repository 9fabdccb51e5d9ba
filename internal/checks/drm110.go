package checks

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm110() Check {
	return Check{
		Code:       "DRM110",
		Title:      "Eviction ends work that is not resumed by itself",
		Why:        "A pod that runs to an end starts again from its beginning, or from its last checkpoint, if anything starts it again at all. The Job controller counts an evicted pod as failed, so that several evictions may use up the Job's backoffLimit.",
		Fix:        "Wait for the work to end, or have it write a checkpoint. A Job can leave evictions out of the count by a podFailurePolicy that ignores the condition DisruptionTarget.",
		Sources:    []string{"pkg/controller/job/job_controller.go, isPodFailed, v1.37.2", "kubernetes/kubernetes#125579", "Kubernetes docs, \"Handling retriable and non-retriable pod failures with Pod failure policy\""},
		Advises:    true,
		Operations: []string{Migrate, Rollback, MigrateFrom, RollbackFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			jobs, others, bare := ownerGroups{}, ownerGroups{}, ownerGroups{}
			for _, v := range in.targets() {
				for _, p := range in.evictions(v) {
					kind, ends := p.WorkloadOwner().Kind, p.RestartPolicy == corev1.RestartPolicyNever || p.RestartPolicy == corev1.RestartPolicyOnFailure
					switch {
					case kind == "" && in.EvictUnmanaged:
						bare.add(&p, "has no controller: --evict-unmanaged ends it for good")
					case kind == "": // DRM019 refuses it
					case kind == cluster.KindJob:
						jobs.add(&p, "its work begins again from the start or its last checkpoint, and counts as failed against the Job's backoffLimit")
					case ends:
						others.add(&p, fmt.Sprintf("runs to an end (restartPolicy %s): whether and where its work goes on is up to its controller", p.RestartPolicy))
					}
				}
			}
			with := func(remedy string) Finding { return Finding{Code: "DRM110", Severity: Warning, Remedy: remedy} }
			out := bare.findings(with("save its manifest, to make it again: `kubectl get pod NAME -n NAMESPACE -o yaml`"))
			out = append(out, jobs.findings(with("see its backoffLimit (6 unless it is set), and wait for it: `kubectl wait --for=condition=complete job/NAME -n NAMESPACE --timeout=-1s`, or let it write a checkpoint before the node's turn"))...)
			return append(out, others.findings(with("wait until it has ended, or let it write a checkpoint before the node's turn"))...)
		},
	}
}
