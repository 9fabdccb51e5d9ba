package cluster

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CustomKind is a kind that is read without its Go types: it belongs to others, or only
// a few of its fields matter.
type CustomKind struct {
	// Part is what Unknown calls it.
	Part     string
	Version  schema.GroupVersion
	Kind     string
	Resource string
	// Namespaced is false for kinds that belong to the whole cluster.
	Namespaced bool
	// BuiltIn is true for kinds that every API server serves. The others may not be
	// installed, and then there are none.
	BuiltIn bool
	// Selector is the label that the objects have; all if empty.
	Selector string
	// Queries takes from an object what it asks; nil for operators' objects.
	Queries func(object map[string]any) []Query
}

// CustomKinds are the kinds of Snapshot.Queries and Snapshot.Operators.
func CustomKinds() []CustomKind {
	prometheus := schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}
	nvidia := schema.GroupVersion{Group: "nvidia.com", Version: "v1alpha1"}
	return []CustomKind{
		{Part: PartDashboards, Version: corev1.SchemeGroupVersion, Kind: "ConfigMap", Resource: "configmaps",
			Namespaced: true, BuiltIn: true, Selector: DashboardLabel, Queries: dashboardQueries},
		{Part: PartAutoscalers, Version: autoscalingv2.SchemeGroupVersion, Kind: "HorizontalPodAutoscaler",
			Resource: "horizontalpodautoscalers", Namespaced: true, BuiltIn: true, Queries: autoscalerQueries},
		{Part: PartScaledObjects, Version: schema.GroupVersion{Group: "keda.sh", Version: "v1alpha1"},
			Kind: "ScaledObject", Resource: "scaledobjects", Namespaced: true, Queries: scaledObjectQueries},
		{Part: PartPrometheusRules, Version: prometheus, Kind: "PrometheusRule", Resource: "prometheusrules",
			Namespaced: true, Queries: ruleQueries},
		{Part: PartServiceMonitors, Version: prometheus, Kind: "ServiceMonitor", Resource: "servicemonitors",
			Namespaced: true, Queries: monitorQueries},
		{Part: PartClusterPolicies, Version: schema.GroupVersion{Group: "nvidia.com", Version: "v1"},
			Kind: "ClusterPolicy", Resource: "clusterpolicies"},
		{Part: PartGPUClusters, Version: nvidia, Kind: "GPUCluster", Resource: "gpuclusters"},
		{Part: PartNVIDIADrivers, Version: nvidia, Kind: "NVIDIADriver", Resource: "nvidiadrivers"},
	}
}

// field goes down a path of maps; nil if it ends early.
func field(object any, path ...string) any {
	for _, key := range path {
		fields, ok := object.(map[string]any)
		if !ok {
			return nil
		}
		object = fields[key]
	}
	return object
}

// text is the string at the end of a path, or "".
func text(object any, path ...string) string {
	s, _ := field(object, path...).(string)
	return s
}

// list is the list at the end of a path, or nil.
func list(object any, path ...string) []any {
	l, _ := field(object, path...).([]any)
	return l
}

// flag is the boolean at the end of a path; nil if there is none.
func flag(object any, path ...string) *bool {
	if b, ok := field(object, path...).(bool); ok {
		return &b
	}
	return nil
}
