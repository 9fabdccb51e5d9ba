package checks

import (
	"fmt"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm052() Check {
	return Check{
		Code:        "DRM052",
		Title:       "Nodes of the new pool are cordoned",
		Why:         "Whoever has cordoned a node knows why; a run uncordons only what a run has cordoned. Such a node takes no workload.",
		Fix:         "Uncordon the nodes of the new pool that are to take workloads.",
		Sources:     []string{"the rule of this tool that a node which somebody else has cordoned stays cordoned"},
		Unskippable: true,
		Operations:  []string{MigrateInto},
		Run: func(in Input) []Finding {
			var cordoned []string
			all := in.seen()
			for _, v := range all {
				if cluster.ForeignCordon(v.Node) {
					cordoned = append(cordoned, v.Node.Name)
				}
			}
			if len(cordoned) == 0 {
				return nil
			}
			f := Finding{
				Code: "DRM052", Severity: Warning, Object: in.poolObject(),
				Message: fmt.Sprintf("somebody else has cordoned %s of %d: the run leaves it alone, and no workload goes there", nodeList(cordoned), len(all)),
				Remedy:  "`kubectl uncordon " + strings.Join(cordoned, " ") + "`, those that are to take workloads",
			}
			if len(cordoned) == len(all) {
				f.Severity = Blocker
				f.Message = fmt.Sprintf("somebody else has cordoned every node of it (%s): none would take a workload", few(cordoned))
			}
			return []Finding{f}
		},
	}
}
