package checks

import (
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm094() Check {
	return Check{
		Code:       "DRM094",
		Title:      "A node's report leaves open who has its devices, or there is none",
		Why:        "Whoever gives reports wants the plan judged by what the nodes say. A node that was not asked, or that could not tell, has not said that it is clean.",
		Fix:        "Probe the pool again, so that each of its nodes answers in full.",
		Sources:    []string{"dramigrate probe --save"},
		Operations: []string{Migrate, Rollback, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Needs:      []string{cluster.PartSlices}, // which nodes have devices
		Given:      byReports,
		Run: func(in Input) []Finding {
			open := nodeGroups{}
			said := map[string]bool{}
			for _, w := range in.witnesses() {
				said[w.Node] = true
				// A node that is another one now is DRM059's.
				if len(w.Double) == 0 && w.Undecided != "" && (in.outdated(w) == "" || w.Aged) {
					open.add("by its report it cannot be told whether a device is in two hands: "+w.Undecided, w.Node)
				}
			}
			for _, v := range in.targets() {
				if n, _ := v.Capacity(in.Resource); !said[v.Node.Name] && (n > 0 || len(v.Slices) > 0) {
					open.add("no report is of it", v.Node.Name)
				}
			}
			return open.findings(in, Finding{
				Code: "DRM094", Severity: Unknown,
				Remedy: words.Command("probe", in.Pool.Name, "--save", "DIR") + ", into a folder without the old reports; the run asks each node itself, too",
			})
		},
	}
}

// byReports says that there are reports of nodes to judge by.
func byReports(in Input) bool { return len(in.Witnesses) > 0 }
