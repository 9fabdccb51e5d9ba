package checks

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm021() Check {
	return Check{
		Code:       "DRM021",
		Title:      "A node is not ready",
		Why:        "On a node whose kubelet does not report, pods do not end, the plugin's resources do not go to zero, and slices stay. A migration has no business there; a rollback goes on with the other nodes and says so.",
		Fix:        "Bring the node back, or take it out of the pool.",
		Sources:    []string{"pkg/controller/nodelifecycle, v1.37.2"},
		Operations: []string{Migrate, Rollback, MigrateInto, RollbackFrom, RollbackInto, Verify},
		Run: func(in Input) []Finding {
			down, silent := nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				switch ready, reason := nodeReady(v.Node); ready {
				case corev1.ConditionTrue:
				case corev1.ConditionFalse, corev1.ConditionUnknown:
					down.add(fmt.Sprintf("condition Ready is %s (%s)", ready, reason), v.Node.Name)
				default:
					silent.add("has no condition Ready", v.Node.Name)
				}
			}
			severity := Blocker
			if in.Operation != Migrate && in.Operation != MigrateInto {
				severity = Warning
			}
			remedy := "see `kubectl describe node NODE`; bring the node back, or take it out of the pool"
			return append(
				down.findings(in, Finding{Code: "DRM021", Severity: severity, Remedy: remedy}),
				silent.findings(in, Finding{Code: "DRM021", Severity: Unknown, Remedy: remedy})...)
		},
	}
}

func nodeReady(n *corev1.Node) (corev1.ConditionStatus, string) {
	if c := cluster.ReadyCondition(n); c != nil {
		return c.Status, c.Reason
	}
	return "", ""
}
