package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// objectOf reads an object as kubectl prints it.
func objectOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestQueries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		part, object string
		want         []Query
	}{
		{PartPrometheusRules, `
metadata: {namespace: m, name: r}
spec:
  groups:
  - rules:
    - {record: "gpu:capacity", expr: sum(kube_node_status_capacity)}
    - {alert: Down, expr: up == 0}
    - {alert: Few, expr: 'sum(kube_pod_container_resource_requests{resource="nvidia_com_gpu"})'}
    - {alert: Quota, expr: 'kube_resourcequota{resource="requests.nvidia.com/gpu"}'}
  - rules: [{alert: Any, expr: '{__name__=~"kube_node_status_(allocatable|capacity)"}'}, {alert: Ready, expr: kube_node_status_condition}]
`, []Query{
			{"prometheusrule/m/r", "gpu:capacity", "sum(kube_node_status_capacity)"},
			{"prometheusrule/m/r", "Few", `sum(kube_pod_container_resource_requests{resource="nvidia_com_gpu"})`},
			{"prometheusrule/m/r", "Quota", `kube_resourcequota{resource="requests.nvidia.com/gpu"}`},
			{"prometheusrule/m/r", "Any", `{__name__=~"kube_node_status_(allocatable|capacity)"}`},
		}},
		{PartServiceMonitors, `
metadata: {namespace: m, name: s}
spec:
  endpoints:
  - port: a
  - metricRelabelings: [{regex: go_.*, action: drop}, {regex: kube_node_status_allocatable, action: keep}]
`, []Query{{"servicemonitor/m/s", "endpoints[1].metricRelabelings[1]", "kube_node_status_allocatable"}}},
		{PartAutoscalers, `
metadata: {namespace: a, name: h}
spec:
  metrics:
  - {type: Resource, resource: {name: cpu}}
  - {type: External, external: {metric: {name: kube_node_status_allocatable, selector: {matchLabels: {resource: nvidia_com_gpu, node: n1}}}}}
  - {type: Object, object: {metric: {name: requests_per_second}}}
`, []Query{{"horizontalpodautoscaler/a/h", "external metric kube_node_status_allocatable", `kube_node_status_allocatable{node="n1",resource="nvidia_com_gpu"}`}}},
		{PartScaledObjects, `
metadata: {namespace: a, name: k}
spec:
  triggers:
  - {type: cpu, metadata: {value: "50"}}
  - {type: prometheus, metadata: {query: sum(amd_com_gpu_used)}}
  - {type: prometheus, metadata: {query: 'sum(rate(http_requests_total[1m]))'}}
`, []Query{{"scaledobject/a/k", "triggers[1]", "sum(amd_com_gpu_used)"}}},
		{PartDashboards, `
metadata: {namespace: g, name: d}
data:
  broken.json: 'kube_node_status_capacity {'
  gpu.json: |
    {"title": "GPUs", "panels": [
      {"title": "Row", "type": "row", "panels": [
        {"title": "Free", "targets": [{"expr": "kube_node_status_allocatable - 1"}, {"expr": "up"}]}]},
      {"targets": [{"expr": "nvidia_com_gpu"}, {"expr": "nvidia_com_gpu_total"}]}]}
`, []Query{
			{"configmap/g/d", "Free", "kube_node_status_allocatable - 1"},
			{"configmap/g/d", "GPUs", "nvidia_com_gpu"},
			{"configmap/g/d", "GPUs", "nvidia_com_gpu_total"},
		}},
		{PartPrometheusRules, `{metadata: {name: odd}, spec: {groups: {rules: text}}}`, nil},
	} {
		for _, k := range CustomKinds() {
			if k.Part != tt.part {
				continue
			}
			if diff := cmp.Diff(tt.want, k.Queries(objectOf(t, tt.object))); diff != "" {
				t.Errorf("queries of %s (-want +got):\n%s", k.Kind, diff)
			}
		}
	}
}

func TestQueriesAreBounded(t *testing.T) {
	t.Parallel()
	long := asks("o", "w", "nvidia_com_gpu + "+strings.Repeat("x", 1<<20))
	if len(long) != 1 || len(long[0].Expression) != 4096 {
		t.Errorf("expression of %d bytes, want 4096", len(long[0].Expression))
	}
	var many []Query
	for i := range MaxQueries + 1 {
		many = append(many, Query{Object: fmt.Sprintf("o%05d", i), Expression: "nvidia_com_gpu"})
	}
	if kept, err := LimitQueries(many); len(kept) != 10_000 || err == nil {
		t.Errorf("%d kept, error %v, want 10,000 and that there are more", len(kept), err)
	}
	twice := []Query{{"b", "", "x"}, {"a", "", "x"}, {"b", "", "x"}}
	if kept, err := LimitQueries(twice); err != nil || !cmp.Equal([]Query{{"a", "", "x"}, {"b", "", "x"}}, kept) {
		t.Errorf("%v, %v, want each once and sorted", kept, err)
	}
}

func TestProjectOperator(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		object string
		want   OperatorObject
	}{
		{`
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy, uid: u}
spec:
  devicePlugin: {enabled: true, config: {name: plugin-config, default: any}}
  mig: {strategy: mixed}
  sandboxWorkloads: {enabled: false}
  driver:
    enabled: true
    upgradePolicy: {autoUpgrade: true}
    manager: {env: [{name: OTHER, value: x}, {name: NODE_LABEL_FOR_GPU_POD_EVICTION, value: nvidia.com/dra-kubelet-plugin}]}
status: {state: notReady}
`, OperatorObject{APIVersion: "nvidia.com/v1", Kind: "ClusterPolicy", Name: "cluster-policy", UID: "u", State: "notReady",
			DevicePlugin: ptr.To(true), DevicePluginConfig: "plugin-config", MIGStrategy: "mixed", SandboxWorkloads: ptr.To(false),
			Driver: ptr.To(true), AutoUpgrade: ptr.To(true), EvictionNodeLabel: "nvidia.com/dra-kubelet-plugin"}},
		{`{apiVersion: nvidia.com/v1alpha1, kind: NVIDIADriver, metadata: {name: d}, spec: {manager: {env: [{name: NODE_LABEL_FOR_GPU_POD_EVICTION, value: l}]}}}`,
			OperatorObject{APIVersion: "nvidia.com/v1alpha1", Kind: "NVIDIADriver", Name: "d", EvictionNodeLabel: "l"}},
		{`{apiVersion: nvidia.com/v1alpha1, kind: GPUCluster, metadata: {name: gpu-cluster}, spec: 7}`,
			OperatorObject{APIVersion: "nvidia.com/v1alpha1", Kind: "GPUCluster", Name: "gpu-cluster"}},
	} {
		got := ProjectOperator(objectOf(t, tt.object))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("ProjectOperator (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(got, ProjectOperator(got.Object())); diff != "" {
			t.Errorf("ProjectOperator(Object()) (-want +got):\n%s", diff)
		}
	}
}
