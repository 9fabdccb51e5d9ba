package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm055() Check {
	return Check{
		Code:        "DRM055",
		Title:       "The pool's workloads went into another pool",
		Why:         "Nodes that were left, and those that took the workloads, carry records of that move. Another one on top of it would lose the way back.",
		Fix:         "Go on with the move that was begun, or roll it back first.",
		Sources:     []string{"the annotation dramigrate.dev/state of the nodes"},
		Unskippable: true,
		Operations:  []string{Migrate, MigrateFrom},
		Run: func(in Input) []Finding {
			if in.Pool.Name == "" {
				return nil
			}
			into := cluster.WentInto(in.Snapshot, in.Pool.Name)
			if into == nil || into.Name == in.Other.Name {
				return nil
			}
			return []Finding{{
				Code: "DRM055", Severity: Blocker, Object: in.poolObject(),
				Message: fmt.Sprintf("its workloads went into pool %s, or are on their way there", into.Name),
				Remedy:  words.Command("apply", in.Pool.Name, "--into", into.Name) + " goes on, " + words.Command("rollback", in.Pool.Name) + " goes back",
			}}
		},
	}
}
