package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/gate"
)

// drm029: the gate's label has three states. With any other value the node belongs to
// neither mechanism, and no run knows what to put back.
func drm029() Check {
	return Check{
		Code:       "DRM029",
		Title:      "A node's gate label has a value that no run has set",
		Operations: []string{Migrate, Rollback},
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
