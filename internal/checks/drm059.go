package checks

import (
	"slices"

	"github.com/dramigrate/dramigrate/internal/words"
)

func drm059() Check {
	return Check{
		Code:       "DRM059",
		Title:      "A node's report is of another time",
		Why:        "A report says who offers and who has a node's devices at one moment. Pods come and go, plugins restart, and a machine's name is given to another one.",
		Fix:        "Probe the pool again shortly before the plan is made.",
		Sources:    []string{"dramigrate probe --save"},
		Advises:    true,
		Operations: []string{Migrate, Rollback, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Given:      byReports,
		Run: func(in Input) []Finding {
			groups := nodeGroups{}
			nodes := in.nodes()
			for _, w := range in.Witnesses {
				if _, there := in.Snapshot.Node(w.Node); there && !slices.Contains(nodes, w.Node) {
					continue // another pool's, or of the move's other side
				}
				if why := in.outdated(w); why != "" {
					groups.add(why, w.Node)
				}
			}
			return groups.findings(in, Finding{
				Code: "DRM059", Severity: Warning,
				Remedy: words.Command("probe", in.Pool.Name, "--save", "DIR") + ", into a folder without the old reports",
			})
		},
	}
}
