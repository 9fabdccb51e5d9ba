package offline

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

const toolNamespace = "dramigrate-system"

// A cluster with something of everything that the tool reads: pool gpu-a of which one
// node is on DRA already and two hold pods by the plugin, pool gpu-b that is left
// alone, a prepared plugin and driver with a journal of it, a budget, a lock.
func clusterObjects(t *testing.T) []runtime.Object {
	t.Helper()
	node := func(name, pool string, gpus string) *corev1.Node {
		list := corev1.ResourceList{"cpu": quantity.MustParse("3920m"), "memory": quantity.MustParse("32Gi"), "nvidia.com/gpu": quantity.MustParse(gpus)}
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7",
				Labels: map[string]string{"eks.amazonaws.com/nodegroup": pool, "nvidia.com/gpu.present": "true", "odd": "on", "number": "1e3"}},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{
				Capacity: list, Allocatable: list,
				Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Unix(500, 0)}},
				NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.37.2"},
			},
		}
	}
	set := func(namespace, name, folder string, labels map[string]string, operator corev1.NodeSelectorOperator, values ...string) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name),
				Annotations:   map[string]string{appsv1.DeprecatedTemplateGeneration: "5", corev1.LastAppliedConfigAnnotation: "{}"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl-client-side-apply", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1("{}")}}},
			Spec: appsv1.DaemonSetSpec{
				Selector:       &metav1.LabelSelector{MatchLabels: labels},
				UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{
						ServiceAccountName: name,
						Containers: []corev1.Container{{Name: "c", Image: "nvcr.io/x:1", Args: []string{"--flag=no"},
							Env: []corev1.EnvVar{{Name: "MIG_STRATEGY", Value: "none"}, {Name: "TOKEN", Value: "hunter2"}}}},
						Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
						Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
							HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/" + folder}}}},
						Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
							NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
								{Key: "dramigrate.dev/allocation", Operator: operator, Values: values}}}}}}},
					},
				},
			},
		}
	}
	pod := func(name, node string, owner *metav1.OwnerReference, gpus string) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "train"}},
			Spec:       corev1.PodSpec{NodeName: node, SchedulerName: "default-scheduler", Containers: []corev1.Container{{Name: "main", Image: "train:1"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}
		if owner != nil {
			owner.Controller = ptr.To(true)
			p.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		if gpus != "" {
			list := corev1.ResourceList{"nvidia.com/gpu": quantity.MustParse(gpus)}
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
		}
		return p
	}
	replicas := func() *metav1.OwnerReference {
		return &metav1.OwnerReference{Kind: "ReplicaSet", Name: "train-1", UID: "rs"}
	}
	daemon := func(name, node, set, namespace string) *corev1.Pod {
		p := pod(name, node, &metav1.OwnerReference{Kind: "DaemonSet", Name: set, UID: types.UID(set)}, "")
		p.Namespace, p.Labels = namespace, map[string]string{"pod-template-generation": "4"}
		return p
	}

	moved := node("a-1", "gpu-a", "0")
	opened := metav1.Unix(1000, 0)
	state, err := cluster.NodeState{Pool: "gpu-a", Selector: "eks.amazonaws.com/nodegroup=gpu-a", Operation: "migrate", Run: "r1", Epoch: 1,
		Phase: "settle", Resources: []string{"nvidia.com/gpu"}, Advertised: []string{"GPU-1"}, OpenedAt: &opened, SettledAt: &opened}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	moved.Labels["dramigrate.dev/allocation"] = "dra"
	moved.Annotations = map[string]string{"dramigrate.dev/state": state, "note": "line one\nline two: \"quoted\"\n"}

	bridged := pod("train-bridged", "a-1", replicas(), "1")
	bridged.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: "train-bridged-extended-resources-1",
		RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: "nvidia.com/gpu", RequestName: "container-0-request-0"}},
	}
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train-bridged-extended-resources-1", UID: "claim",
			Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "container-0-request-0", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}},
		Status: resourcev1.ResourceClaimStatus{
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: bridged.Name, UID: bridged.UID}},
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "container-0-request-0", Driver: "gpu.nvidia.com", Pool: "a-1", Device: "gpu-0"}}}},
		},
	}
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "a-1-gpu.nvidia.com-x"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.nvidia.com", NodeName: ptr.To("a-1"), Pool: resourcev1.ResourcePool{Name: "a-1", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"uuid": {StringValue: ptr.To("GPU-1")}, "type": {StringValue: ptr.To("gpu")}, "driverVersion": {VersionValue: ptr.To("580.1.0")}},
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: quantity.MustParse("80Gi")}}}},
		},
	}
	class := &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu", UID: "class", CreationTimestamp: metav1.Unix(900, 0)},
		Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: ptr.To("nvidia.com/gpu"),
			Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`}}},
			// A number that YAML has another form for, and an order that is not sorted.
			Config: []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{
				Driver: "gpu.nvidia.com", Parameters: runtime.RawExtension{Raw: []byte(`{"kind":"GpuConfig","share":1.0,"big":1e21,"at":"<&>","apiVersion":"v1"}`)}}}}},
		},
	}
	plugin := set("kube-system", "plugin", "device-plugins", map[string]string{"name": "nvidia-device-plugin-ds"}, corev1.NodeSelectorOpDoesNotExist)
	driver := set("dra", "driver", "plugins_registry", map[string]string{"dra-driver-nvidia-gpu-component": "kubelet-plugin"}, corev1.NodeSelectorOpIn, "dra")
	journal := func(j cluster.Journal) *corev1.ConfigMap {
		j.APIVersion, j.Kind = cluster.APIVersion, cluster.JournalKind
		cm, err := cluster.EncodeJournal(&j, toolNamespace)
		if err != nil {
			t.Fatal(err)
		}
		return cm
	}
	static := pod("static-b-1", "b-1", &metav1.OwnerReference{Kind: "Node", Name: "b-1", UID: "uid-b-1"}, "")
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	lease := cluster.LockInfo{Namespace: toolNamespace, Name: "pool-gpu-b", Holder: "she@host/1", Since: time.UnixMicro(1000001), RenewedAt: time.UnixMicro(2000002),
		TTL: time.Minute, Epoch: 4, Info: map[string]string{"operation": "migrate"}}.Lease()
	return []runtime.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "cluster-uid"}},
		moved, node("a-2", "gpu-a", "2"), node("a-3", "gpu-a", "2"), node("b-1", "gpu-b", "4"),
		plugin, driver,
		daemon("plugin-2", "a-2", "plugin", "kube-system"), daemon("plugin-3", "a-3", "plugin", "kube-system"), daemon("plugin-b", "b-1", "plugin", "kube-system"),
		daemon("driver-1", "a-1", "driver", "dra"),
		bridged, pod("train-1", "a-2", replicas(), "1"), pod("train-2", "a-3", replicas(), "2"), pod("web", "a-3", nil, ""), static,
		slice, class, claim,
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train"},
			Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 3, DesiredHealthy: 2, ExpectedPods: 3}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "train"}},
		journal(cluster.Journal{Pool: "gpu-a", Selector: "eks.amazonaws.com/nodegroup=gpu-a", Nodes: []string{"a-1"},
			Runs: []cluster.RunRecord{{ID: "r1", Operation: "migrate", Who: "she", Started: metav1.Unix(900, 0), Outcome: "done"}}}),
		journal(cluster.Journal{Shared: &cluster.SharedRecord{DriverSource: "installed", PreImages: []cluster.PreImage{{
			Object: cluster.ObjectRef{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "kube-system", Name: "plugin", UID: "plugin"},
			Path:   "/spec/template/spec/affinity", Before: []byte("null"), After: mustJSON(t, plugin.Spec.Template.Spec.Affinity)}}}}),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "a"}}},
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gpus"},
			Spec:   corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.nvidia.com/gpu": quantity.MustParse("8")}},
			Status: corev1.ResourceQuotaStatus{Used: corev1.ResourceList{"requests.nvidia.com/gpu": quantity.MustParse("4")}}},
		&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "limits"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"nvidia.com/gpu": quantity.MustParse("4")}}}}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000, PreemptionPolicy: ptr.To(corev1.PreemptNever)},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train", UID: "d"},
			Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3), Template: podTemplate("1")}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.DeploymentSpec{Template: podTemplate("")}},
		&batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train"}, Spec: batchv1.CronJobSpec{Suspend: ptr.To(true),
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: podTemplate("2")}}}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: cluster.SchedulerRole}},
		lease,
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: "a-1"}},
	}
}

// podTemplate asks for GPUs, or for nothing if there are none; its environment holds a
// password.
func podTemplate(gpus string) corev1.PodTemplateSpec {
	c := corev1.Container{Name: "main", Image: "train:1", Env: []corev1.EnvVar{
		{Name: "PASSWORD", Value: "hunter2"}, {Name: "NVIDIA_VISIBLE_DEVICES", Value: "none"}}}
	if gpus != "" {
		list := corev1.ResourceList{"nvidia.com/gpu": quantity.MustParse(gpus), "cpu": quantity.MustParse("2"), "memory": quantity.MustParse("1Gi")}
		c.Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{c}, PriorityClassName: "high"}}
}

// customObjects are what a dynamic client reads of the same cluster.
func customObjects(t *testing.T) []runtime.Object {
	t.Helper()
	var out []runtime.Object
	for _, text := range []string{
		"{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: cluster-policy, uid: p}, spec: {mig: {strategy: mixed}, devicePlugin: {enabled: true}}, status: {state: ready}}",
		"{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {namespace: m, name: gpu}, spec: {groups: [{rules: [{alert: Few, expr: \"sum(nvidia_com_gpu)\\n< 1\"}, {alert: Few, expr: kube_node_status_capacity}]}]}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: m, name: board, labels: {grafana_dashboard: '1'}}, data: {a.json: '{\"panels\":[{\"title\":\"P\",\"targets\":[{\"expr\":\"kube_node_status_allocatable\"}]}]}'}}",
	} {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		out = append(out, &unstructured.Unstructured{Object: object})
	}
	return out
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err == nil {
		data, err = yaml.YAMLToJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// live reads a fake cluster; forbidden are resources that may not be listed.
func live(t *testing.T, objects []runtime.Object, forbidden ...string) *cluster.Snapshot {
	t.Helper()
	client := fake.NewClientset(objects...)
	client.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2", EmulationMajor: "1", EmulationMinor: "36"}
	for _, r := range forbidden {
		client.PrependReactor("list", r, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: r}, "", nil)
		})
	}
	client.Resources = []*metav1.APIResourceList{
		{GroupVersion: "resource.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "deviceclasses"}}},
		{GroupVersion: "nvidia.com/v1", APIResources: []metav1.APIResource{{Name: "clusterpolicies"}}},
		{GroupVersion: "monitoring.coreos.com/v1", APIResources: []metav1.APIResource{{Name: "prometheusrules"}}},
	}
	kinds := map[schema.GroupVersionResource]string{}
	for _, k := range cluster.CustomKinds() {
		kinds[k.Version.WithResource(k.Resource)] = k.Kind + "List"
	}
	others := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, customObjects(t)...)
	for _, r := range forbidden {
		others.PrependReactor("list", r, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: r}, "", nil)
		})
	}
	s, err := cluster.Load(t.Context(), client, cluster.LoadOptions{Namespace: toolNamespace, Advice: true, Dynamic: others})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func about() About {
	return About{ToolVersion: "v0.0.0-test", Namespace: toolNamespace, Taken: time.Unix(5000, 0)}
}

func written(t *testing.T, s *cluster.Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := Write(&b, s, about()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readStream(t *testing.T, data []byte) *cluster.Snapshot {
	t.Helper()
	s, ignored, err := Read(t.Context(), []string{Stdin}, Options{Namespace: toolNamespace, Advice: true, Stdin: bytes.NewReader(data)})
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	if len(ignored) > 0 {
		t.Errorf("ignored %v", ignored)
	}
	return s
}

func plans(t *testing.T, s *cluster.Snapshot) map[plan.Operation][]byte {
	t.Helper()
	out := map[plan.Operation][]byte{}
	for _, op := range []plan.Operation{plan.Prepare, plan.Migrate, plan.Rollback, plan.Unprepare} {
		in := plan.Intent{Operation: op, ToolVersion: "v0.0.0-test", Namespace: toolNamespace, Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com"}
		if op == plan.Migrate || op == plan.Rollback {
			pool, err := cluster.SelectPool(s, "gpu-a", "")
			if err != nil {
				t.Fatal(err)
			}
			in.Pool = pool
			in.Settings = plan.Settings{MaxUnavailable: "1", Drain: plan.DrainAll, HelperImage: "helper:1"}
		}
		if j := s.Journal(""); j != nil {
			in.Shared = j.Shared
		}
		p, err := plan.Build(in, s)
		if err != nil { // no plan at all may be the answer
			out[op] = []byte(err.Error())
			continue
		}
		if out[op], err = yaml.Marshal(p); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestPlanFromSnapshotIsThePlanMadeLive(t *testing.T) {
	t.Parallel()
	for name, forbidden := range map[string][]string{
		"all is seen":              nil,
		"budgets are not seen":     {"poddisruptionbudgets"},
		"the records are not seen": {"configmaps", "leases"},
		"no advice can be given": {"deployments", "jobs", "resourcequotas", "namespaces", "priorityclasses", "prometheusrules",
			"configmaps", "clusterpolicies", "horizontalpodautoscalers"},
		"next to nothing is seen": {"pods", "daemonsets", "resourceslices", "deviceclasses", "resourceclaims"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live(t, clusterObjects(t), forbidden...)
			want := plans(t, s)
			stream := written(t, s)
			folder := t.TempDir()
			if _, err := WriteFolder(folder, s, about()); err != nil {
				t.Fatal(err)
			}
			fromFolder, _, err := Read(t.Context(), []string{folder}, Options{Namespace: toolNamespace, Advice: true})
			if err != nil {
				t.Fatal(err)
			}
			for source, back := range map[string]*cluster.Snapshot{"stream": readStream(t, stream), "folder": fromFolder} {
				for op, got := range plans(t, back) {
					if diff := cmp.Diff(string(want[op]), string(got)); diff != "" {
						t.Errorf("plan to %s from the %s (-live +file):\n%s", op, source, diff)
					}
				}
				if !back.Taken.Equal(time.Unix(5000, 0)) {
					t.Errorf("taken at %s, want when the files say", back.Taken)
				}
				back.Taken = time.Time{}
				if diff := cmp.Diff(s, back, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
					t.Errorf("snapshot from the %s (-live +file):\n%s", source, diff)
				}
				if !bytes.Equal(stream, written(t, back)) {
					t.Errorf("written again from the %s, the snapshot has other bytes", source)
				}
			}
			if forbidden != nil {
				return
			}
			if len(s.Unknown) > 0 || len(s.Workloads) != 2 || len(s.Queries) != 3 || len(s.Operators) != 1 || len(s.Namespaces) != 2 || len(s.API.Features) != 1 {
				t.Errorf("unknown %v, workloads %v, queries %v, operators %v, namespaces %v, API %v: want something of each kind",
					s.Unknown, s.Workloads, s.Queries, s.Operators, s.Namespaces, s.API)
			}
			// The plans are of that cluster, and not equal because they are empty.
			for op, texts := range map[plan.Operation][]string{
				plan.Migrate:   {"pod: default/train-1", "- default/train\n", "node: a-1", "emulationVersion: \"1.36\""},
				plan.Rollback:  {"pod: default/train-bridged", "by claim train-bridged-extended-resources-1"},
				plan.Prepare:   {"kube-system"},
				plan.Unprepare: {"/spec/template/spec/affinity"},
			} {
				for _, text := range texts {
					if !strings.Contains(string(want[op]), text) {
						t.Errorf("plan to %s has no %q:\n%s", op, text, want[op])
					}
				}
			}
		})
	}
}

func TestWrittenSnapshotHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	objects := append(clusterObjects(t), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: toolNamespace, Name: "s"}, StringData: map[string]string{"k": "hunter2"}})
	data := written(t, live(t, objects))
	if bytes.Contains(data, []byte("hunter2")) || bytes.Contains(data, []byte("kind: Secret")) || bytes.Contains(data, []byte("10.0.0.1")) {
		t.Errorf("a secret, an environment's value or an address is in\n%s", data)
	}
	if !bytes.Contains(data, []byte("name: TOKEN")) || !bytes.Contains(data, []byte("value: none")) {
		t.Errorf("the variable's name, or the value of MIG_STRATEGY, is not in\n%s", data)
	}
}

func TestWriteFolderReplacesAnother(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if _, err := WriteFolder(folder, live(t, clusterObjects(t)), about()); err != nil {
		t.Fatal(err)
	}
	bare := live(t, []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}})
	if _, err := WriteFolder(folder, bare, about()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"clusterpolicies", "nodes", "queries", "snapshot"} { // the first and the third are of both
		want = append(want, filepath.Join(folder, name+".yaml"))
	}
	if !cmp.Equal(want, files) {
		t.Errorf("files %v, want %v", files, want)
	}
	if info, err := os.Stat(files[1]); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v, want a file that others may read", info, err)
	}
}

// What the caller may do is a part of the snapshot, so that a plan from it says what the
// cluster would have said of the same caller.
func TestAccessIsKept(t *testing.T) {
	t.Parallel()
	for _, access := range []*cluster.Access{nil, {All: true}, {Reviews: cluster.SortAccess([]cluster.AccessReview{
		{Right: cluster.Right{Verb: "patch", Resource: "nodes"}, Answer: cluster.Denied, Reason: "no rule: \"x\""},
		{Right: cluster.Right{Verb: "get", Path: "/version"}, Answer: cluster.Allowed},
	})}} {
		s := live(t, clusterObjects(t))
		s.Access = access
		if diff := cmp.Diff(access, readStream(t, written(t, s)).Access); diff != "" {
			t.Errorf("access (-written +read):\n%s", diff)
		}
	}
}
