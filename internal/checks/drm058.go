package checks

import "strings"

func drm058() Check {
	return Check{
		Code:        "DRM058",
		Title:       "A node says itself that a device is in two hands",
		Why:         "The API does not know which device a pod has by the plugin. The node does: by its kubelet, its driver's records and its hardware. A device that plugin and driver both offer may be given twice; one that two pods have is used by both, and nothing in Kubernetes ends that.",
		Fix:         "End one of the two pods, or take the mechanism that does not belong there off the node; then probe it again.",
		Sources:     []string{"KEP-5004, \"Non-Goals\"", "pkg/kubelet/apis/podresources/server_v1.go, v1.37.2"},
		Unskippable: true,
		Operations:  []string{Migrate, Rollback, MigrateFrom, MigrateInto, RollbackFrom, RollbackInto},
		Given:       byReports,
		Run: func(in Input) []Finding {
			var out []Finding
			for _, w := range in.witnesses() {
				// Of a node that is another one now, the word is worth nothing; an old word
				// of the same node still is until it is asked again.
				if why := in.outdated(w); len(w.Double) == 0 || why != "" && !w.Aged {
					continue
				}
				what := "offered by both mechanisms"
				if w.Held {
					what = "in two hands"
				}
				out = append(out, Finding{
					Code: "DRM058", Severity: Blocker, Object: "node/" + w.Node,
					Message: "by the node's own word, a device is " + what + ": " + strings.Join(w.Double, "; "),
					Remedy:  "see who has it: `dramigrate probe --node " + w.Node + " -o wide`; end one of the two pods, or take one of the mechanisms off the node, and save a new report",
				})
			}
			return out
		},
	}
}
