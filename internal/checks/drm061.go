package checks

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm061() Check {
	return Check{
		Code:        "DRM061",
		Title:       "The pool's nodes need different gates",
		Why:         "A run moves all nodes of its pool by the same labels. A DaemonSet that heeds others would stay on some of them.",
		Fix:         "Divide the pool by --selector, so that each part is served by one plugin.",
		Sources:     []string{"the gates of this tool: labels of vendors' switches and dramigrate.dev/allocation"},
		Unskippable: true,
		Operations:  []string{Migrate, Rollback},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var nodes []*corev1.Node
			for _, v := range in.seen() {
				nodes = append(nodes, v.Node)
			}
			gates := map[string]string{} // name → by what
			for name, node := range gate.Recorded(nodes...) {
				gates[name] = "the record of node " + node
			}
			if in.Operation == Migrate {
				for _, c := range in.Inventory.For(in.Resource, nodes...) {
					if len(c.For) > 0 && gates[c.Gate.Name] == "" {
						gates[c.Gate.Name] = "daemonset/" + few(c.For)
					}
				}
			}
			if len(gates) < 2 {
				return nil
			}
			var parts []string
			for _, name := range slices.Sorted(maps.Keys(gates)) {
				parts = append(parts, name+" ("+gates[name]+")")
			}
			return []Finding{{
				Code: "DRM061", Severity: Blocker, Object: in.poolObject(),
				Message: "one run moves its nodes by the labels of one gate, and they need several: " + strings.Join(parts, ", "),
				Remedy:  "move the nodes of each gate as a pool of their own, chosen by --selector",
			}}
		},
	}
}
