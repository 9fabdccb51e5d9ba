package offline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// lists is what kubectl prints of the kinds that advice is made from.
const lists = nodeYAML + `---
{kind: List, apiVersion: v1, items: [
  {kind: Deployment, apiVersion: apps/v1, metadata: {name: web, namespace: a}},
  {kind: Deployment, apiVersion: apps/v1, metadata: {name: train, namespace: a}, spec: {replicas: 2,
    template: {spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}]}
---
{kind: List, apiVersion: v1, items: [
  {kind: Namespace, apiVersion: v1, metadata: {name: kube-system, uid: u}},
  {kind: Namespace, apiVersion: v1, metadata: {name: a, labels: {x: "1"}}}]}
---
{kind: List, apiVersion: v1, items: [
  {kind: ConfigMap, apiVersion: v1, metadata: {name: b, namespace: g, labels: {grafana_dashboard: "1"}},
    data: {f: '{"title":"T","targets":[{"expr":"nvidia_com_gpu"}]}'}}]}
---
{kind: ServiceMonitorList, apiVersion: monitoring.coreos.com/v1, items: []}
---
{kind: ClusterPolicyList, apiVersion: nvidia.com/v1, items: [{metadata: {name: cluster-policy}, spec: {driver: {enabled: false}}}]}
---
{kind: APIGroup, apiVersion: v1, name: resource.k8s.io, versions: [{groupVersion: resource.k8s.io/v1beta1, version: v1beta1}, {groupVersion: resource.k8s.io/v1, version: v1}]}
---
{kind: ClusterRole, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: "system:kube-scheduler"},
  rules: [{apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [create, delete]}]}
---
{kind: ClusterRole, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: "system:other"}}
---
{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: high}, value: 7}
`

func TestReadPlainKindsForAdvice(t *testing.T) {
	t.Parallel()
	s, ignored, err := Read(t.Context(), []string{Stdin}, Options{Namespace: toolNamespace, Advice: true, Stdin: strings.NewReader(lists)})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Workloads) != 1 || s.Workloads[0].Ref() != "deployment/a/train" || s.Workloads[0].Replicas != 2 {
		t.Errorf("workloads %+v, want deployment/a/train alone, which asks for a device", s.Workloads)
	}
	if diff := cmp.Diff([]cluster.Namespace{{Name: "a", Labels: map[string]string{"x": "1"}}, {Name: "kube-system"}}, s.Namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if s.Identity.UID != "u" {
		t.Errorf("cluster %q, want that of kube-system", s.Identity.UID)
	}
	if diff := cmp.Diff([]cluster.Query{{Object: "configmap/g/b", Where: "T", Expression: "nvidia_com_gpu"}}, s.Queries); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
	policy := cluster.OperatorObject{APIVersion: "nvidia.com/v1", Kind: "ClusterPolicy", Name: "cluster-policy", Driver: ptr.To(false)}
	if diff := cmp.Diff([]cluster.OperatorObject{policy}, s.Operators); diff != "" {
		t.Errorf("operators (-want +got):\n%s", diff)
	}
	want := cluster.API{ResourceVersions: []string{"v1", "v1beta1"}, Features: map[string]cluster.Feature{
		"DRAExtendedResource": {Enabled: true, Evidence: "clusterrole/system:kube-scheduler may create and delete resourceclaims"}}}
	if diff := cmp.Diff(want, s.API); diff != "" {
		t.Errorf("API (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"ClusterRole": 1}, ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	for _, part := range []string{cluster.PartDeployments, cluster.PartNamespaces, cluster.PartDashboards, cluster.PartServiceMonitors,
		cluster.PartClusterPolicies, cluster.PartResourceAPI, cluster.PartFeatures} {
		if reason, unknown := s.IsUnknown(part); unknown {
			t.Errorf("%s is unknown: %s", part, reason)
		}
	}
	for part, why := range map[string]string{
		cluster.PartJobs:            "the files hold no list of them",
		cluster.PartPriorityClasses: "the files hold single objects of priorityclasses, not a list of all",
		cluster.PartJournals:        "the files hold no ConfigMap of namespace dramigrate-system", // a dashboard is no journal
	} {
		if reason, _ := s.IsUnknown(part); reason != why {
			t.Errorf("%s: %q, want %q", part, reason, why)
		}
	}
}

// Who does not ask for advice gets none, and is not told of what is not there.
func TestReadWithoutAdvice(t *testing.T) {
	t.Parallel()
	s, ignored, err := fromText(t, lists)
	if err != nil {
		t.Fatal(err)
	}
	if s.Advice || len(s.Workloads)+len(s.Namespaces)+len(s.Queries)+len(s.Operators)+len(s.PriorityClasses) > 0 || s.Identity.UID != "u" {
		t.Errorf("%+v, want the cluster's identity and none of the rest", s)
	}
	for _, u := range s.Unknown {
		if cluster.IsAdvice(u.Part) {
			t.Errorf("unknown %v, want nothing that was not asked for", u)
		}
	}
	want := map[string]int{"Deployment": 2, "Namespace": 1, "ConfigMap": 1, "ClusterPolicy": 1, "PriorityClass": 1, "ClusterRole": 2, "APIGroup": 1}
	if diff := cmp.Diff(want, ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	whole := written(t, live(t, clusterObjects(t)))
	if _, ignored, err = fromText(t, string(whole)); err != nil || len(ignored) > 0 {
		t.Errorf("ignored %v, error %v, want silence about what belongs into a snapshot", ignored, err)
	}
}

func TestReadRefusesForAdvice(t *testing.T) {
	t.Parallel()
	rule := "---\n{kind: PrometheusRule, apiVersion: monitoring.coreos.com/v1, metadata: {name: r, namespace: a}, spec: {groups: [{rules: [{expr: %}]}]}}\n"
	for name, tt := range map[string]struct{ text, want string }{
		"a workload in two states": {lists + "---\n{kind: Deployment, apiVersion: apps/v1, metadata: {name: train, namespace: a}}\n", "Deployment a/train: is different in"},
		"a rule in two states": {nodeYAML + strings.ReplaceAll(rule, "%", "nvidia_com_gpu") + strings.ReplaceAll(rule, "%", "up"),
			"PrometheusRule a/r: is different in"},
		"a query of nothing": {nodeYAML + "---\n{kind: Query, apiVersion: dramigrate.dev/v1alpha1, object: a}\n", "Query: has no object or no expression"},
	} {
		_, _, err := Read(t.Context(), []string{Stdin}, Options{Advice: true, Stdin: strings.NewReader(tt.text)})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tt.want)
		}
	}
	// Nothing is wrong with the same lock or pod twice.
	pod := "---\n{kind: Pod, apiVersion: v1, metadata: {name: p, namespace: a, creationTimestamp: 2026-01-01T00:00:00Z}}\n"
	lease := "---\n{kind: Lease, apiVersion: coordination.k8s.io/v1, metadata: {name: l, namespace: " + toolNamespace + "}, spec: {renewTime: 2026-01-01T00:00:00.500000Z}}\n"
	if _, _, err := fromText(t, nodeYAML+pod+pod+lease+lease); err != nil {
		t.Error(err)
	}
}

// What kubectl got as resource.k8s.io/v1, be it an empty list, shows that v1 is served; a
// list without a version does not.
func TestServedByWhatWasGiven(t *testing.T) {
	t.Parallel()
	nodes := "apiVersion: v1\nkind: NodeList\nitems: [{metadata: {name: n}}]\n"
	for text, want := range map[string]bool{
		nodes: false,
		nodes + "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSliceList\nitems: []\n":      true,
		nodes + "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: c}\n":  true,
		nodes + "---\napiVersion: resource.k8s.io/v1beta1\nkind: ResourceSliceList\nitems: []\n": false,
		nodes + "---\napiVersion: v1\nkind: List\nitems: []\n":                                   false,
	} {
		s, _, err := Read(t.Context(), []string{Stdin}, Options{Advice: true, Stdin: strings.NewReader(text)})
		if err != nil {
			t.Fatal(err)
		}
		_, unknown := s.IsUnknown(cluster.PartResourceAPI)
		if got := !unknown && slices.Equal(s.API.ResourceVersions, []string{"v1"}); got != want {
			t.Errorf("served %v, unknown %v, want %v for\n%s", s.API.ResourceVersions, unknown, want, text)
		}
	}
}
