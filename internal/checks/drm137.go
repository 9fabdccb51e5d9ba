package checks

import "github.com/dramigrate/dramigrate/internal/cluster"

func drm137() Check {
	return Check{
		Code:       "DRM137",
		Title:      "Autoscalers read devices from nodes' allocatable",
		Why:        "A HorizontalPodAutoscaler or a KEDA trigger that divides by the devices of nodes, or compares with them, scales by a number that falls to 0 as nodes are switched: workloads grow or shrink without cause. A VerticalPodAutoscaler leaves extended resources alone.",
		Fix:        "Change the query before the first node is switched, or pause the autoscaler for the window.",
		Sources:    []string{"kubernetes/kube-state-metrics, docs/metrics/cluster/node-metrics.md", "KEDA docs, \"Pause autoscaling\""},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom, Verify},
		Needs:      []string{cluster.PartAutoscalers, cluster.PartScaledObjects},
		Run: func(in Input) []Finding {
			return in.queriesOf("DRM137", "horizontalpodautoscaler", "scaledobject")
		},
	}
}
