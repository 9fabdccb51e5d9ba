package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm056() Check {
	return Check{
		Code:        "DRM056",
		Title:       "Old nodes are gone that the workloads came from",
		Why:         "A rollback opens the old nodes before it closes the new ones. Nodes that an autoscaler or a person has removed since cannot be opened; without any, evicted pods would have nowhere to go.",
		Fix:         "Have the old pool's node group make nodes again, or leave the workloads where they are.",
		Sources:     []string{"the journal of the pool"},
		Unskippable: true,
		Operations:  []string{RollbackInto},
		Needs:       []string{cluster.PartJournals},
		Run: func(in Input) []Finding {
			var gone []string
			if j := in.Snapshot.Journal(in.Pool.Name); j != nil {
				for _, name := range j.Nodes {
					if _, there := in.Snapshot.Node(name); !there {
						gone = append(gone, name)
					}
				}
			}
			f := Finding{Code: "DRM056", Object: in.poolObject(), Remedy: "have its node group make nodes again first, or leave the workloads in pool " + in.Other.Name}
			switch {
			case len(in.Pool.Nodes) == 0:
				f.Severity = Blocker
				f.Message = "none of its nodes is left: there is nothing to go back to"
				if len(gone) > 0 {
					f.Message = fmt.Sprintf("none of its nodes is left (gone: %s): there is nothing to go back to", few(gone))
				}
			case len(gone) > 0:
				f.Severity = Warning
				f.Message = nodeList(gone) + " of it are gone since: the rollback goes on with those that are left"
				f.Remedy = "have its node group make nodes again first, if the workloads need them"
			default:
				return nil
			}
			return []Finding{f}
		},
	}
}
