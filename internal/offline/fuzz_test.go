package offline

import (
	"bytes"
	"strings"
	"testing"
)

// Whatever the bytes are, reading ends with a Snapshot or with an error that says
// where; and a Snapshot that was read is the same after it was written and read again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		nodeYAML, nodeJSON,
		`{"apiVersion":"v1","items":[` + nodeJSON + `],"kind":"List"}` + nodeJSON,
		"apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: a}\n---\nserverVersion: {gitVersion: v1.37.2, major: '1', minor: '37'}\n",
		"--- # a\n%YAML 1.1\n---\na: &a [*a]\n...\n",
		"kind: Pod\napiVersion: v1\nmetadata: {name: p, namespace: n}\nspec: {containers: [{resources: {limits: {a/b: 1e3}}}]}\n---\n" + nodeYAML,
		"kind: Lease\napiVersion: coordination.k8s.io/v1\nmetadata: {name: p, namespace: dramigrate-system}\nspec: {leaseDurationSeconds: 9, renewTime: 2026-01-01T00:00:00.5Z}\n---\n" + nodeYAML,
		"kind: Job\napiVersion: batch/v1\nmetadata: {name: p, namespace: n}\nspec: {suspend: true, template: {spec: {containers: [{resources: {limits: {a/b: 1, cpu: 1, memory: 1}}}]}}}\n---\n" + nodeYAML,
		"kind: CronJob\napiVersion: batch/v1\nmetadata: {name: p, namespace: n}\nspec: {jobTemplate: {spec: {template: {spec: {resourceClaims: [{name: c, resourceClaimTemplateName: t}]}}}}}\n---\n" + nodeYAML,
		"kind: ClusterPolicy\napiVersion: nvidia.com/v1\nmetadata: {name: p}\nspec: {driver: {enabled: true, manager: {env: [{name: NODE_LABEL_FOR_GPU_POD_EVICTION, value: x}]}}}\n---\n" + nodeYAML,
		"kind: PrometheusRule\napiVersion: monitoring.coreos.com/v1\nmetadata: {name: p, namespace: n}\nspec: {groups: [{rules: [{alert: a, expr: nvidia_com_gpu}]}]}\n---\n" + nodeYAML,
		"kind: ConfigMap\napiVersion: v1\nmetadata: {name: p, namespace: n, labels: {grafana_dashboard: ''}}\ndata: {a: '{\"targets\":[{\"expr\":\"nvidia.com/gpu\"}]}'}\n---\n" + nodeYAML,
		"kind: Query\napiVersion: dramigrate.dev/v1alpha1\nobject: a\nexpression: b\n---\n" + nodeYAML,
		"kind: ClusterRole\napiVersion: rbac.authorization.k8s.io/v1\nmetadata: {name: system:kube-scheduler}\n---\n" + nodeYAML,
		"kind: APIGroup\napiVersion: v1\nname: resource.k8s.io\nversions: [{version: v1}]\n---\n" + nodeYAML,
		"kind: ResourceQuota\napiVersion: v1\nmetadata: {name: p, namespace: n}\nspec: {hard: {cpu: 1e3, requests.a/b: '2'}}\n---\nkind: PriorityClass\napiVersion: scheduling.k8s.io/v1\nmetadata: {name: p}\nvalue: 3\n---\n" + nodeYAML,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _, err := Read(t.Context(), []string{Stdin}, Options{Namespace: toolNamespace, Advice: true, Stdin: bytes.NewReader(data)})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "standard input") {
				t.Errorf("error %q does not begin with where it is", err)
			}
			return
		}
		var first, second bytes.Buffer
		if _, err := Write(&first, s, about()); err != nil {
			t.Fatal(err)
		}
		again, _, err := Read(t.Context(), []string{Stdin}, Options{Namespace: toolNamespace, Advice: true, Stdin: bytes.NewReader(first.Bytes())})
		if err != nil {
			t.Fatalf("%v in\n%s", err, first.Bytes())
		}
		if _, err := Write(&second, again, about()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("written:\n%s\nread and written again:\n%s", first.Bytes(), second.Bytes())
		}
	})
}
