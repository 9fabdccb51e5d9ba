package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm029() Check {
	return Check{
		Code:        "DRM029",
		Title:       "A node's gate label has a value that no run has set",
		Why:         "A gate's labels have three states. With any other value a node belongs to neither mechanism, and no run knows what to put back.",
		Fix:         "Find out who sets the label, and take it away.",
		Sources:     []string{"the gate of this tool: label dramigrate.dev/allocation"},
		Unskippable: true,
		Operations:  []string{Migrate, Rollback},
		Run: func(in Input) []Finding {
			var out []Finding
			for _, v := range in.seen() {
				if _, known := in.Gate.StateOf(v.Node.Labels); known {
					continue
				}
				out = append(out, Finding{
					Code:     "DRM029",
					Severity: Blocker,
					Object:   "node/" + v.Node.Name,
					Message:  fmt.Sprintf("label %s=%s is none of the gate's states: somebody else has set it", gate.AllocationLabel, v.Node.Labels[gate.AllocationLabel]),
					Remedy:   fmt.Sprintf("kubectl label node %s %s-", v.Node.Name, gate.AllocationLabel),
				})
			}
			return out
		},
	}
}
