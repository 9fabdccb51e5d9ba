package checks

import "github.com/dramigrate/dramigrate/internal/cluster"

func drm136() Check {
	return Check{
		Code:       "DRM136",
		Title:      "Dashboards read devices from nodes' allocatable",
		Why:        "It is what DRM135 says of alerts: a panel that counts devices by allocatable or capacity shows fewer with each node that is switched. Looked at are the dashboards in ConfigMaps with the label " + cluster.DashboardLabel + "; those that Grafana keeps itself cannot be seen.",
		Fix:        "Take the number of devices from the vendor's exporter, beside what allocatable says of nodes that keep the plugin.",
		Sources:    []string{"kubernetes/kube-state-metrics, docs/metrics/cluster/node-metrics.md", "kubernetes/kube-state-metrics#3005, #3020"},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom, Verify},
		Needs:      []string{cluster.PartDashboards},
		Run:        func(in Input) []Finding { return in.queriesOf("DRM136", "configmap") },
	}
}
