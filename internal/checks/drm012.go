package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm012() Check {
	return Check{
		Code:        "DRM012",
		Title:       "A node is under migration as part of another pool",
		Why:         "A node is switched under the lock of one pool. Two pools' runs on one node would undo each other.",
		Fix:         "Work on the pool that has begun with the node, by its own name, or roll that back first.",
		Sources:     []string{"the annotation dramigrate.dev/state of the node"},
		Unskippable: true,
		Operations:  []string{Migrate, Rollback, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto, Verify},
		Run: func(in Input) []Finding {
			foreign, unread := nodeGroups{}, nodeGroups{}
			for _, v := range in.seen() {
				switch st, err := cluster.ParseNodeState(v.Node); {
				case err != nil:
					unread.add("annotation "+gate.StateAnnotation+" cannot be read", v.Node.Name)
				case in.Operation == Verify: // a pool may have taken the workloads of another
				case st != nil && in.Pool.Name != "" && st.Pool != in.runPool():
					foreign.add(fmt.Sprintf("is under migration as part of pool %s (selector %s)", st.Pool, st.Selector), v.Node.Name)
				}
			}
			remedy := "work on that pool by its own name, or roll it back first; `dramigrate status` shows it"
			if in.Operation == MigrateInto {
				remedy = "a node takes the workloads of one pool, so that its rollback knows where they came from: give the second pool new nodes of its own"
			}
			return append(
				foreign.findings(in, Finding{Code: "DRM012", Severity: Blocker, Remedy: remedy}),
				unread.findings(in, Finding{
					Code: "DRM012", Severity: Unknown,
					Remedy: "repair the annotation by hand; if the node was never switched, remove it: `kubectl annotate node NODE " + gate.StateAnnotation + "-`",
				})...)
		},
	}
}
