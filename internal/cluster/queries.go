package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Query is what something in the cluster asks about the devices that nodes have or pods
// request. After a migration the answer may be another: kube-state-metrics counts a
// node's allocatable and capacity, which fall to zero.
type Query struct {
	// Object asks: "prometheusrule/monitoring/gpu-alerts".
	Object string `json:"object"`
	// Where is the place in it: a rule, a panel, a metric, a container.
	Where string `json:"where,omitempty"`
	// Expression is PromQL, the regular expression of a relabeling, or the name of a
	// metric or a resource; at most 4 KiB.
	Expression string `json:"expression"`
}

// Limits on what is kept of queries: expressions of one kind, and the bytes of each.
const (
	MaxQueries    = 10_000
	maxExpression = 4 << 10
	maxWhere      = 256
)

// DashboardLabel marks the ConfigMaps that hold dashboards for Grafana.
const DashboardLabel = "grafana_dashboard"

// aboutDevices recognises what asks about allocatable or capacity, also by a regular
// expression, or about an extended resource of a device vendor: as Kubernetes writes its
// name or as kube-state-metrics does (internal/store/utils.go, sanitizeLabelName).
var aboutDevices = regexp.MustCompile(`kube_node_status_(allocatable|capacity|[(.\[])` +
	`|(nvidia_com|amd_com|(gpu_)?intel_com|habana_ai|google_com|huawei_com|rebellions_ai|aws_amazon_com)_[a-z]` +
	`|(nvidia\.com|amd\.com|intel\.com|habana\.ai|google\.com|huawei\.com|rebellions\.ai|aws\.amazon\.com)/[a-z]` +
	`|deviceclass_resource_kubernetes_io_`)

// asks is a Query if the expression is about devices.
func asks(object, where, expression string) []Query {
	if !aboutDevices.MatchString(expression) {
		return nil
	}
	return []Query{{Object: object, Where: bounded(where, maxWhere), Expression: bounded(expression, maxExpression)}}
}

// named is an object as messages name it.
func named(kind string, object map[string]any) string {
	return kind + "/" + text(object, "metadata", "namespace") + "/" + text(object, "metadata", "name")
}

// ruleQueries are those of a PrometheusRule.
func ruleQueries(object map[string]any) []Query {
	var out []Query
	for _, group := range list(object, "spec", "groups") {
		for _, rule := range list(group, "rules") {
			where := cmp.Or(text(rule, "alert"), text(rule, "record"))
			out = append(out, asks(named("prometheusrule", object), where, text(rule, "expr"))...)
		}
	}
	return out
}

// monitorQueries are the relabelings of a ServiceMonitor that keep, drop or rename the
// metrics: what they match after a migration is another.
func monitorQueries(object map[string]any) []Query {
	var out []Query
	for i, endpoint := range list(object, "spec", "endpoints") {
		for j, relabeling := range list(endpoint, "metricRelabelings") {
			where := fmt.Sprintf("endpoints[%d].metricRelabelings[%d]", i, j)
			out = append(out, asks(named("servicemonitor", object), where, text(relabeling, "regex"))...)
		}
	}
	return out
}

// autoscalerQueries are the metrics of a HorizontalPodAutoscaler that do not come from
// the pods' own usage.
func autoscalerQueries(object map[string]any) []Query {
	var out []Query
	for _, m := range list(object, "spec", "metrics") {
		for _, kind := range []string{"external", "object", "pods"} {
			metric := field(m, kind, "metric")
			if metric == nil {
				continue
			}
			expression := text(metric, "name")
			if labels, ok := field(metric, "selector", "matchLabels").(map[string]any); ok {
				var pairs []string
				for _, key := range slices.Sorted(maps.Keys(labels)) {
					pairs = append(pairs, fmt.Sprintf("%s=%q", key, labels[key]))
				}
				expression += "{" + strings.Join(pairs, ",") + "}"
			}
			out = append(out, asks(named("horizontalpodautoscaler", object), kind+" metric "+text(metric, "name"), expression)...)
		}
	}
	return out
}

// scaledObjectQueries are the Prometheus triggers of a KEDA ScaledObject.
func scaledObjectQueries(object map[string]any) []Query {
	var out []Query
	for i, trigger := range list(object, "spec", "triggers") {
		if text(trigger, "type") != "prometheus" {
			continue
		}
		where := cmp.Or(text(trigger, "name"), text(trigger, "metadata", "metricName"), fmt.Sprintf("triggers[%d]", i))
		out = append(out, asks(named("scaledobject", object), where, text(trigger, "metadata", "query"))...)
	}
	return out
}

// dashboardQueries are those of the panels of the dashboards in a ConfigMap. What is no
// JSON is no dashboard.
func dashboardQueries(object map[string]any) []Query {
	files, _ := field(object, "data").(map[string]any)
	var out []Query
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, _ := files[name].(string)
		var dashboard any
		if !aboutDevices.MatchString(file) || json.Unmarshal([]byte(file), &dashboard) != nil {
			continue
		}
		out = append(out, panelQueries(named("configmap", object), name, dashboard)...)
	}
	return out
}

// panelQueries goes through a dashboard for whatever has targets: panels stand in
// panels, in rows, and, in exports, inside of other objects.
func panelQueries(object, where string, at any) []Query {
	var out []Query
	switch v := at.(type) {
	case []any:
		for _, item := range v {
			out = append(out, panelQueries(object, where, item)...)
		}
	case map[string]any:
		if title := text(v, "title"); title != "" {
			where = title
		}
		for _, target := range list(v, "targets") {
			out = append(out, asks(object, where, text(target, "expr"))...)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, panelQueries(object, where, v[key])...)
		}
	}
	return out
}
