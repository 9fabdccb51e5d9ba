package checks

import "github.com/dramigrate/dramigrate/internal/cluster"

func drm135() Check {
	return Check{
		Code:       "DRM135",
		Title:      "Alerts and recordings read devices from nodes' allocatable",
		Why:        "A switched node advertises none of the resource: its allocatable falls to 0 at once and its capacity after five minutes, and a new node has no such series at all. Sums get smaller, ratios divide by zero, and alerts on missing devices fire. What pods request stays as it was.",
		Fix:        "Take the number of devices from the vendor's exporter, beside what allocatable says of nodes that keep the plugin, before the first node is switched.",
		Sources:    []string{"kubernetes/kube-state-metrics, docs/metrics/cluster/node-metrics.md", "kubernetes/kube-state-metrics#3005, #3020", "pkg/controller/resourceclaim/metrics/metrics.go, v1.36.3 and v1.37.2"},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom, Verify},
		Needs:      []string{cluster.PartPrometheusRules, cluster.PartServiceMonitors},
		Run: func(in Input) []Finding {
			return in.queriesOf("DRM135", "prometheusrule", "servicemonitor")
		},
	}
}
