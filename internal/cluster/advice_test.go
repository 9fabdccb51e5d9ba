package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// template asks for GPUs, or for nothing if there are none.
func template(gpus string) corev1.PodTemplateSpec {
	c := corev1.Container{Name: "main", Image: "train:1"}
	if gpus != "" {
		list := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}
		c.Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "train"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{c}},
	}
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team", Name: name, UID: "u-x"}
}

// adviceObjects are one of each kind that advice is made from, and what it does not use.
func adviceObjects() []runtime.Object {
	claims := template("")
	claims.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimTemplateName: ptr.To("channel")}}
	owned := meta("nightly-1")
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "CronJob", Name: "nightly", UID: "u-c", Controller: ptr.To(true)}}
	queued := meta("queued")
	queued.Labels = map[string]string{QueueLabel: "gpus"}
	return []runtime.Object{
		&appsv1.Deployment{ObjectMeta: meta("train"), Spec: appsv1.DeploymentSpec{Template: template("2")}},
		&appsv1.Deployment{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{Template: template("")}},
		&appsv1.StatefulSet{ObjectMeta: meta("ring"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0), Template: claims}},
		&batchv1.Job{ObjectMeta: owned, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4), Template: template("1")},
			Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}},
		&batchv1.Job{ObjectMeta: queued, Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: template("1")}},
		&batchv1.CronJob{ObjectMeta: meta("nightly"), Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{
			Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4), Template: template("1")}}}},
		&corev1.ResourceQuota{ObjectMeta: meta("gpus"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("8")}}},
		&corev1.LimitRange{ObjectMeta: meta("limits")},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"a": "b"}}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000, PreemptionPolicy: ptr.To(corev1.PreemptNever)},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: SchedulerRole}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: []string{"create", "delete"}}}},
	}
}

// others is a fake server of the kinds without Go types.
func others(objects ...runtime.Object) *fake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{}
	for _, k := range CustomKinds() {
		kinds[k.Version.WithResource(k.Resource)] = k.Kind + "List"
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
}

// installed are the resources that discovery tells of.
func installed() []*metav1.APIResourceList {
	return []*metav1.APIResourceList{
		{GroupVersion: "resource.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "deviceclasses"}}},
		{GroupVersion: "resource.k8s.io/v1beta2", APIResources: []metav1.APIResource{{Name: "deviceclasses"}}},
		{GroupVersion: "nvidia.com/v1", APIResources: []metav1.APIResource{{Name: "clusterpolicies"}}},
		{GroupVersion: "nvidia.com/v1beta7", APIResources: []metav1.APIResource{{Name: "gpuclusters"}}},
		{GroupVersion: "monitoring.coreos.com/v1", APIResources: []metav1.APIResource{{Name: "prometheusrules"}}},
	}
}

func TestLoadAdvice(t *testing.T) {
	t.Parallel()
	c := server(adviceObjects()...)
	c.Resources = installed()
	rule := &unstructured.Unstructured{Object: objectOf(t, `
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {namespace: monitoring, name: gpu}
spec: {groups: [{rules: [{alert: NoGPU, expr: "kube_node_status_allocatable{resource=\"nvidia_com_gpu\"} == 0"}]}]}
`)}
	policy := &unstructured.Unstructured{Object: objectOf(t, `{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: cluster-policy}}`)}
	s, err := Load(context.Background(), c, LoadOptions{Advice: true, Dynamic: others(rule, policy)})
	if err != nil {
		t.Fatal(err)
	}
	var workloads []string
	for i := range s.Workloads {
		workloads = append(workloads, s.Workloads[i].Ref())
	}
	if diff := cmp.Diff([]string{"cronjob/team/nightly", "job/team/nightly-1", "job/team/queued", "statefulset/team/ring", "deployment/team/train"}, workloads); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
	if s.Quotas[0].Name != "gpus" || s.LimitRanges[0].Name != "limits" {
		t.Errorf("quotas %v, limit ranges %v", s.Quotas, s.LimitRanges)
	}
	if diff := cmp.Diff([]Namespace{{Name: "kube-system"}, {Name: "team", Labels: map[string]string{"a": "b"}, Terminating: true}}, s.Namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]PriorityClass{{"high", 1000, corev1.PreemptNever}}, s.PriorityClasses); diff != "" {
		t.Errorf("priority classes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Query{{"prometheusrule/monitoring/gpu", "NoGPU", `kube_node_status_allocatable{resource="nvidia_com_gpu"} == 0`}}, s.Queries); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
	if len(s.Operators) != 1 || s.Operators[0].Name != "cluster-policy" {
		t.Errorf("operators %+v, want the ClusterPolicy", s.Operators)
	}
	want := API{ResourceVersions: []string{"v1", "v1beta2"}, Features: map[string]Feature{
		"DRAExtendedResource": {true, "clusterrole/system:kube-scheduler may create and delete resourceclaims"}}}
	if diff := cmp.Diff(want, s.API); diff != "" {
		t.Errorf("API (-want +got):\n%s", diff)
	}
	// What is not installed is none; what is there in another version is unknown.
	if diff := cmp.Diff([]Unknown{{"gpuclusters", "the server has it as nvidia.com/v1beta7, and this version reads nvidia.com/v1alpha1"}}, s.Unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}

func TestAdviceIsReadOnRequest(t *testing.T) {
	t.Parallel()
	c := server(adviceObjects()...)
	c.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		t.Error("deployments were asked for")
		return false, nil, nil
	})
	s, err := Load(context.Background(), c, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Unknown) > 0 {
		t.Errorf("unknown %v, want nothing: nobody asked", s.Unknown)
	}
	for _, part := range AdviceParts() {
		if reason, unknown := s.IsUnknown(part); !unknown || reason != "not asked for" {
			t.Errorf("IsUnknown(%s) = %q, %t, want that it was not asked for", part, reason, unknown)
		}
	}
	if _, unknown := s.IsUnknown(PartPods); unknown {
		t.Error("pods are unknown")
	}
}

func TestLoadAdviceUnknown(t *testing.T) {
	t.Parallel()
	forbid := func(f *clienttesting.Fake, verb, plural string) {
		f.PrependReactor(verb, plural, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: plural}, "", errors.New("no such right"))
		})
	}
	parts := func(s *Snapshot) string {
		var out []string
		for _, u := range s.Unknown {
			out = append(out, u.Part)
		}
		return strings.Join(out, " ")
	}
	t.Run("each part for itself", func(t *testing.T) {
		t.Parallel()
		c, d := server(adviceObjects()...), others()
		c.Resources = installed()[:3]
		for _, r := range []string{"deployments", "resourcequotas", "namespaces", "priorityclasses"} {
			forbid(&c.Fake, "list", r)
		}
		forbid(&c.Fake, "get", "clusterroles")
		for _, r := range []string{"configmaps", "clusterpolicies", "servicemonitors"} { // the last is not installed, and not asked for
			forbid(&d.Fake, "list", r)
		}
		s, err := Load(context.Background(), c, LoadOptions{Advice: true, Dynamic: d})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := parts(s), "all-namespaces clusterpolicies dashboards deployments features priorityclasses resourcequotas"; got != want {
			t.Errorf("unknown %q, want %q", got, want)
		}
		if len(s.Workloads) != 4 {
			t.Errorf("%d workloads, want the 4 of other kinds", len(s.Workloads))
		}
	})
	t.Run("a kind whose server is broken", func(t *testing.T) {
		t.Parallel()
		c := server(adviceObjects()...)
		c.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(errors.New("conversion webhook failed"))
		})
		s, err := Load(context.Background(), c, LoadOptions{Advice: true, Dynamic: others()})
		if err != nil || parts(s) != "deployments" {
			t.Errorf("unknown %v, error %v, want that deployments are unknown", s, err)
		}
	})
	t.Run("a context that ended is an error", func(t *testing.T) {
		t.Parallel()
		c := server(adviceObjects()...)
		c.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, context.Canceled
		})
		if _, err := Load(context.Background(), c, LoadOptions{Advice: true, Dynamic: others()}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	})
	t.Run("no client for the kinds of others", func(t *testing.T) {
		t.Parallel()
		s, err := Load(context.Background(), server(adviceObjects()...), LoadOptions{Advice: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Unknown) != len(CustomKinds()) {
			t.Errorf("unknown %q, want every kind of CustomKinds", parts(s))
		}
	})
}

func TestParseFeatures(t *testing.T) {
	t.Parallel()
	long := "apiserver_x{a=\"" + strings.Repeat("kubernetes_feature_enabled{", 8<<10) + "\"} 1\n"
	in := "# HELP apiserver_x x\n" + long + `# HELP kubernetes_feature_enabled the gates
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="DRAExtendedResource",stage="BETA"} 1
kubernetes_feature_enabled{name="DRAExtendedResourceOther",stage="BETA"} 0
kubernetes_feature_enabled{name="DRANodeAllocatableResources",stage="ALPHA"} 0
other{name="DynamicResourceAllocation"} 1
kubernetes_feature_enabled{name="DynamicResourceAllocation",stage=""} 1
`
	got, err := parseFeatures(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	evidence := "kubernetes_feature_enabled of the API server"
	// The family is over at the first other line: what comes after is not read.
	if diff := cmp.Diff(map[string]Feature{"DRAExtendedResource": {true, evidence}, "DRANodeAllocatableResources": {false, evidence}}, got); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
}

func TestFeatureOfRole(t *testing.T) {
	t.Parallel()
	role := func(autoUpdate string, verbs ...string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: SchedulerRole, Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: autoUpdate}},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: verbs}},
		}
	}
	if f, err := FeatureOfRole(role("true", "get", "create", "delete")); err != nil || !f.Enabled {
		t.Errorf("%+v, %v, want on", f, err)
	}
	if f, err := FeatureOfRole(role("true", "get", "create")); err != nil || f.Enabled {
		t.Errorf("%+v, %v, want off", f, err)
	}
	if _, err := FeatureOfRole(role("false", "get")); err == nil {
		t.Error("a role that is not kept up to date tells nothing")
	}
}

// A workload that comes back from a file is the same.
func TestWorkloadObjectIsTheInverse(t *testing.T) {
	t.Parallel()
	full := Workload{Kind: KindJob, Namespace: "team", Name: "train", UID: "u", Replicas: 4, Suspended: true, Finished: true,
		Owner: Owner{Kind: "CronJob", Name: "nightly", UID: "o"}, Queue: "gpus",
		Template: ProjectPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Labels: map[string]string{"app": "x"}}, Spec: template("2").Spec})}
	full.Template.Guaranteed, full.Template.PriorityClass = true, "high"
	// A pod that is guaranteed its resources asks for some.
	full.Template.CPU, full.Template.Memory = 1000, 1<<30
	full.Template.Claims, full.Template.ClaimTemplates = []string{"", "own"}, []string{"channel"}
	deployment, set, cron := full, full, full
	deployment.Kind, deployment.Suspended, deployment.Finished = KindDeployment, false, false
	set.Kind, set.Suspended, set.Finished, set.Replicas = KindStatefulSet, false, false, 0
	cron.Kind, cron.Finished = KindCronJob, false
	for _, want := range []Workload{full, deployment, set, cron} {
		var got Workload
		var asks bool
		switch o := want.Object().(type) {
		case *appsv1.Deployment:
			got, asks = ProjectDeployment(o)
		case *appsv1.StatefulSet:
			got, asks = ProjectStatefulSet(o)
		case *batchv1.Job:
			got, asks = ProjectJob(o)
		case *batchv1.CronJob:
			got, asks = ProjectCronJob(o)
		}
		if diff := cmp.Diff(want, got); diff != "" || !asks {
			t.Errorf("%s, asks for devices %t (-want +got):\n%s", want.Ref(), asks, diff)
		}
	}
}
