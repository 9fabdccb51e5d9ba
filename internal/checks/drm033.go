package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

func drm033() Check {
	return Check{
		Code:       "DRM033",
		Title:      "The kubelets of a pool are of different versions",
		Why:        "Mostly it means that somebody is upgrading the pool's nodes at this moment. Who replaces or reboots nodes drains them too, waits for the same budgets, and takes the marks of a run away with the node.",
		Fix:        "Let the upgrade of the pool end before its move, or hold the upgrade meanwhile.",
		Sources:    []string{"Kubernetes, \"Version Skew Policy\""},
		Operations: []string{Migrate, Rollback, MigrateInto},
		Advises:    true,
		Run: func(in Input) []Finding {
			nodes := map[string][]string{} // minor release → nodes
			for _, v := range in.seen() {
				if parsed, err := version.ParseGeneric(v.Node.Status.NodeInfo.KubeletVersion); err == nil {
					minor := fmt.Sprintf("%d.%d", parsed.Major(), parsed.Minor())
					nodes[minor] = append(nodes[minor], v.Node.Name)
				}
			}
			if len(nodes) < 2 || in.Pool.Name == "" {
				return nil
			}
			var found []string
			for _, minor := range slices.Sorted(maps.Keys(nodes)) {
				found = append(found, fmt.Sprintf("%s on %s", minor, nodeList(nodes[minor])))
			}
			return []Finding{{
				Code: "DRM033", Severity: Warning, Object: in.poolObject(),
				Message: "its kubelets are of several releases: " + strings.Join(found, "; "),
				Remedy:  "let the upgrade of the pool end first, if there is one; `kubectl get nodes -l '" + in.Pool.Selector + "'` shows the versions",
			}}
		},
	}
}
