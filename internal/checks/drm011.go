package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// drm011: a check that could not see what it needs has not passed.
func drm011() Check {
	return Check{
		Code:       "DRM011",
		Title:      "Something that has to be seen could not be read",
		Operations: []string{Prepare, Migrate, Rollback, Unprepare},
		Mapping:    true,
		Run: func(in Input) []Finding {
			var out []Finding
			for _, u := range in.Snapshot.Unknown {
				f := Finding{
					Code:     "DRM011",
					Severity: Unknown,
					Object:   u.Part,
					Message:  fmt.Sprintf("%s could not be read (%s)", u.Part, u.Reason),
					Remedy:   "give the user that runs the tool the right to list " + u.Part,
				}
				var blind []string
				for _, c := range All() {
					if c.applies(in) && slices.Contains(c.Needs, u.Part) {
						blind = append(blind, c.Code)
					}
				}
				switch {
				case u.Part == cluster.PartIdentity:
					f.Message += ", so the cluster cannot be told from another"
					f.Remedy = "give the user that runs the tool the right to get namespace kube-system"
				case u.Part == cluster.PartJournals:
					f.Message += ", so what earlier runs have recorded is not known"
					f.Remedy = "give the user that runs the tool the right to list configmaps in the tool's namespace"
				case len(blind) > 0:
					f.Message += ", so " + strings.Join(blind, ", ") + " could not be checked"
				default:
					continue
				}
				out = append(out, f)
			}
			return out
		},
	}
}
