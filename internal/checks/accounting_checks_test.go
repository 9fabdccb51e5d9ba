package checks

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// quota adds a quota of namespace team with one limit.
func (s *state) quota(key corev1.ResourceName, hard, used int64) *corev1.ResourceQuota {
	s.Quotas = append(s.Quotas, corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{key: *resource.NewQuantity(hard, resource.DecimalSI)}},
		Status:     corev1.ResourceQuotaStatus{Used: corev1.ResourceList{key: *resource.NewQuantity(used, resource.DecimalSI)}},
	})
	return &s.Quotas[len(s.Quotas)-1]
}

// explicit adds a claim of namespace team for count devices of a class.
func (s *state) explicit(name, class string, count int64) *resourcev1.ResourceClaim {
	s.Claims = append(s.Claims, resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count},
		}}}},
	})
	return &s.Claims[len(s.Claims)-1]
}

// The pods of namespace team on the pool: train with 1 GPU, serve with 2. They will have
// 2 claims with 3 devices.
func TestDRM130(t *testing.T) {
	t.Parallel()
	const classDevices, classRequests = "made.deviceclass.resource.k8s.io/devices", "requests.deviceclass.resource.kubernetes.io/made"
	given2 := func(key corev1.ResourceName, hard, used int64) func(*state) {
		return func(s *state) {
			s.in.NewClass = "made"
			s.addPod("serve", "n2", 2)
			s.quota(key, hard, used)
		}
	}
	blocker, warning := []string{"blocker resourcequota/team/q"}, []string{"warning resourcequota/team/q"}
	try(t, "DRM130", []given{
		{"room for the claims", Migrate, prepared, given2(quotaClaims, 20, 5), nil, ""},
		{"no room for the claims", Migrate, prepared, given2(quotaClaims, 6, 5), blocker, "allows 6 of count/resourceclaims.resource.k8s.io; 5 are in use and the pods of the pool add 2: 7 is more than it allows"},
		{"just room", Migrate, prepared, given2(quotaClaims, 7, 5), warning, "above 90 %"},
		{"nine of ten", Migrate, prepared, given2(quotaClaims, 10, 7), nil, ""},
		{"no room for the class's devices", Migrate, prepared, given2(classDevices, 2, 0), blocker, "add 3: 3 is more"},
		{"room for the class's devices", Migrate, prepared, given2(classDevices, 4, 0), nil, ""},
		{"another class's devices", Migrate, prepared, given2("other.deviceclass.resource.k8s.io/devices", 2, 0), nil, ""},
		{"no room for the class by its implicit name", Migrate, prepared, given2(classRequests, 2, 0), blocker, ""},
		{"the implicit name before 1.35", Migrate, prepared, func(s *state) {
			given2(classRequests, 2, 0)(s)
			s.Identity.ServerVersion = "v1.34.4"
		}, nil, ""},
		{"what pods request is what it was", Migrate, prepared, given2("requests.nvidia.com/gpu", 3, 3), nil, ""},
		{"a quota of a scope counts no claims", Migrate, prepared, func(s *state) {
			given2(quotaClaims, 6, 5)(s)
			s.Quotas[0].Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort}
		}, nil, ""},
		{"of another namespace", Migrate, prepared, func(s *state) { given2(quotaClaims, 6, 5)(s); s.Quotas[0].Namespace = "web" }, nil, ""},
		{"pods of another pool", Migrate, prepared, func(s *state) {
			given2(quotaClaims, 6, 5)(s)
			s.pod("train").Node, s.pod("serve").Node = "m1", "m1"
		}, nil, ""},
		{"pods that have their claims", Migrate, migrated, func(s *state) { s.quota(quotaClaims, 1, 1) }, nil, ""},
	})
	s := prepared()
	s.quota(quotaClaims, 5, 5)
	f := Only(s.of(Migrate), []string{"DRM130"})
	if want := "raise it first: `kubectl patch resourcequota q -n team --type merge -p '{\"spec\":{\"hard\":{\"count/resourceclaims.resource.k8s.io\":\"7\"}}}'`"; len(f) != 1 || f[0].Remedy != want {
		t.Errorf("findings %+v, want remedy %s", f, want) // 6 of 7 is below 90 %
	}
}

// kubernetes/kubernetes#134210: the limit is 8. Pods ask for 3 (train 1, serve 2).
func TestDRM131(t *testing.T) {
	t.Parallel()
	const key = "requests.nvidia.com/gpu"
	both := func(claims, hard int64) func(*state) {
		return func(s *state) {
			s.Classes = append(s.Classes, class("gpu.nvidia.com", `device.driver == "gpu.nvidia.com"`))
			s.addPod("serve", "n2", 2)
			s.explicit("mine", "gpu.nvidia.com", claims)
			s.quota(key, hard, 3)
		}
	}
	blocker, warning := []string{"blocker resourcequota/team/q"}, []string{"warning resourcequota/team/q"}
	try(t, "DRM131", []given{
		{"over the limit", Migrate, prepared, both(6, 8), blocker, "allows 8 of requests.nvidia.com/gpu: pods ask for 3, and claims of the class that maps the name count for 6 more: 9 is more than it allows"},
		{"at the limit", Migrate, prepared, both(5, 8), warning, "above 90 %"},
		{"below it", Migrate, prepared, both(4, 8), nil, ""},
		{"no claims", Migrate, prepared, func(s *state) { both(6, 8)(s); s.Claims = nil }, nil, ""},
		{"claims of another class", Migrate, prepared, func(s *state) {
			both(6, 8)(s)
			s.Claims[0].Spec.Devices.Requests[0].Exactly.DeviceClassName = "nic"
		}, nil, ""},
		{"a generated claim is not counted twice", Migrate, prepared, func(s *state) {
			both(6, 8)(s)
			s.Claims[0].Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
		}, nil, ""},
		{"all devices are 32", Migrate, prepared, func(s *state) {
			both(1, 8)(s)
			s.Claims[0].Spec.Devices.Requests[0].Exactly.AllocationMode = resourcev1.DeviceAllocationModeAll
		}, blocker, "count for 32 more"},
		{"one or the other is the larger", Migrate, prepared, func(s *state) {
			both(1, 8)(s)
			sub := func(n int64) resourcev1.DeviceSubRequest {
				return resourcev1.DeviceSubRequest{DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n}
			}
			s.Claims[0].Spec.Devices.Requests = []resourcev1.DeviceRequest{{FirstAvailable: []resourcev1.DeviceSubRequest{sub(2), sub(7), sub(4)}}}
		}, blocker, "count for 7 more"},
		{"no pod of the pool", Migrate, prepared, func(s *state) {
			both(6, 8)(s)
			s.pod("train").Node, s.pod("serve").Node = "m1", "m1"
		}, warning, "more than it allows"},
	})
	for version, want := range map[string][]string{"v1.34.4": nil, "v1.35.4": blocker, "v1.36.3": blocker, "v1.37.2": blocker, "v1.38.0-beta.0": blocker} {
		given{version, Migrate, prepared, func(s *state) { both(6, 8)(s); s.Identity.ServerVersion = version }, want, ""}.run(t, "DRM131")
	}
}

func TestDRM132AndDRM133(t *testing.T) {
	t.Parallel()
	more := func(n int) func(*state) {
		return func(s *state) {
			for i := range n {
				s.addPod(fmt.Sprintf("p%d", i), "n1", 1)
			}
		}
	}
	try(t, "DRM132", []given{
		{"99", Migrate, prepared, more(98), nil, ""},
		{"100", Migrate, prepared, more(99), []string{"info pool/gpu"}, "will have 100 ResourceClaims in 1 namespaces; the cluster has 0 now"},
	})
	limits := func(s *state) {
		s.Classes = append(s.Classes, class("gpu.nvidia.com", "true"))
		s.LimitRanges = []corev1.LimitRange{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "l"},
			Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{gpu: resource.MustParse("2")}}}},
		}}
	}
	try(t, "DRM133", []given{
		{"it goes on to bound pods", Migrate, prepared, limits, nil, ""},
		{"claims are not bound", Migrate, prepared, func(s *state) { limits(s); s.explicit("mine", "gpu.nvidia.com", 4) }, []string{"info limitrange/team/l"}, "ask for 4 devices"},
		{"no maximum of the resource", Migrate, prepared, func(s *state) {
			limits(s)
			s.explicit("mine", "gpu.nvidia.com", 4)
			s.LimitRanges[0].Spec.Limits[0].Max = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}, nil, ""},
	})
}

func TestDRM134(t *testing.T) {
	t.Parallel()
	kueue := func(tag string) func(*state) {
		return func(s *state) {
			s.pod("train").Queue = "lq"
			if tag != "" {
				s.addPod("kueue-controller-manager", "cpu", 0).Images = []string{"registry.k8s.io/kueue/kueue:" + tag}
			}
		}
	}
	warning, info := []string{"warning kueue"}, []string{"info kueue"}
	try(t, "DRM134", []given{
		{"nobody queues", Migrate, prepared, func(s *state) { kueue("v0.19.1")(s); s.pod("train").Queue = "" }, nil, ""},
		{"0.16", Migrate, prepared, kueue("v0.16.2"), info, "counts nvidia.com/gpu by name as before"},
		{"0.17", Migrate, prepared, kueue("v0.17.0"), warning, "its gate DRAExtendedResources is off"},
		{"0.18", Migrate, prepared, kueue("v0.18.3"), warning, "its gate KueueDRAIntegrationExtendedResource is off"},
		// openshift/openshift-docs#113996, kubernetes-sigs/kueue#13577
		{"0.19", Migrate, prepared, func(s *state) { kueue("v0.19.0")(s); s.in.NewClass = "made" }, warning, "it finds class made by itself, which must not stand in deviceClassMappings as well; workloads found inadmissible before"},
		{"unseen", Migrate, prepared, kueue(""), warning, "its version cannot be seen"},
		{"by a workload that is suspended", Migrate, prepared, func(s *state) {
			kueue("v0.19.0")(s)
			s.pod("train").Queue = ""
			w := s.workload("tune", gpu, 1)
			w.Kind, w.Suspended, w.Queue = cluster.KindJob, true, "lq"
		}, warning, "admits job/team/tune"},
	})
}

func TestQueries(t *testing.T) {
	t.Parallel()
	query := func(object, expression string) func(*state) {
		return func(s *state) {
			s.Queries = []cluster.Query{{Object: object, Where: "GPUsFull", Expression: expression}}
		}
	}
	const rule, panel, scaler = "prometheusrule/monitoring/gpu", "configmap/monitoring/gpu", "scaledobject/serving/llm"
	fires := []string{"warning " + rule}
	try(t, "DRM135", []given{
		{"nobody asks", Migrate, prepared, nil, nil, ""},
		{"allocatable of the resource", Migrate, prepared, query(rule, `sum(kube_node_status_allocatable{resource="nvidia_com_gpu"})`), fires, "GPUsFull: reads allocatable or capacity of nodes, which is 0 for nvidia.com/gpu on switched ones: `sum(kube_node_status_allocatable"},
		{"capacity by a pattern", Migrate, prepared, query(rule, `kube_node_status_capacity{resource=~"nvidia.*"}`), fires, ""},
		{"by a pattern of the metric", Migrate, prepared, query(rule, `{__name__=~"kube_node_status_(allocatable|capacity)",resource="nvidia_com_gpu"}`), fires, ""},
		{"all resources", Migrate, prepared, query(rule, `sum by (resource) (kube_node_status_allocatable)`), fires, ""},
		{"other resources", Migrate, prepared, query(rule, `kube_node_status_allocatable{resource="cpu"}`), nil, ""},
		{"all but this", Migrate, prepared, query(rule, `kube_node_status_allocatable{resource!="nvidia_com_gpu"}`), nil, ""},
		{"all but another", Migrate, prepared, query(rule, `kube_node_status_allocatable{resource!~"cpu|memory"}`), fires, ""},
		{"what pods request stays", Migrate, prepared, query(rule, `sum(kube_pod_container_resource_requests{resource="nvidia_com_gpu"})`), nil, ""},
		{"dashboards are DRM136's", Migrate, prepared, query(panel, `kube_node_status_allocatable`), nil, ""},
		{"fifty objects", Migrate, prepared, func(s *state) {
			for i := range 50 {
				s.Queries = append(s.Queries, cluster.Query{Object: fmt.Sprintf("prometheusrule/team/r%02d", i), Expression: "kube_node_status_allocatable"})
			}
		}, many(), ""},
	})
	try(t, "DRM136", []given{
		{"a panel", Migrate, prepared, query(panel, `kube_node_status_allocatable{resource="nvidia_com_gpu"}`), []string{"warning " + panel}, ""},
		{"a rule is DRM135's", Migrate, prepared, query(rule, `kube_node_status_allocatable`), nil, ""},
	})
	try(t, "DRM137", []given{
		{"a trigger", Migrate, prepared, query(scaler, `kube_node_status_allocatable{resource="nvidia_com_gpu"}`), []string{"warning " + scaler}, ""},
	})
}

// many are 24 objects by name and one finding for the other 26.
func many() []string {
	out := []string{"warning cluster"}
	for i := range 24 {
		out = append(out, fmt.Sprintf("warning prometheusrule/team/r%02d", i))
	}
	return out
}

// What stays is named, and claims by the name that the version has for their metric.
func TestReplacement(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.34.4":        "from 1.35 on kube-controller-manager counts",
		"v1.35.4":        "`sum(resourceclaim_controller_resource_claims{allocated=\"true\",source=\"extended_resource\"})`",
		"v1.36.3":        "`sum(resourceclaim_controller_resource_claims{allocated=\"true\",source=\"extended_resource\"})`",
		"v1.37.2":        "`sum(dynamic_resource_allocation_resource_claims{allocated=\"true\",source=\"extended_resource\"})`",
		"v1.38.0-beta.0": "`sum(dynamic_resource_allocation_resource_claims{allocated=\"true\",source=\"extended_resource\"})`",
	} {
		s := prepared()
		s.Identity.ServerVersion = version
		got := s.of(Migrate).replacement()
		if !strings.Contains(got, want) || !strings.Contains(got, "`sum(kube_pod_container_resource_requests{resource=\"nvidia_com_gpu\"})`") || !strings.Contains(got, "DCGM_FI_DEV_GPU_TEMP") {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}

// NVIDIA/dcgm-exporter#569
func TestDRM138(t *testing.T) {
	t.Parallel()
	runs := func(image string, env ...corev1.EnvVar) func(*state) {
		return func(s *state) {
			s.addDaemonSet("dcgm", nil, "").Spec.Template.Spec.Containers = []corev1.Container{{Name: "e", Image: image, Env: env}}
		}
	}
	const repo = "nvcr.io/nvidia/k8s/dcgm-exporter:"
	told := corev1.EnvVar{Name: "KUBERNETES_ENABLE_DRA"}
	ds := []string{"warning daemonset/kube-system/dcgm"}
	try(t, "DRM138", []given{
		{"no exporter", Migrate, prepared, nil, nil, ""},
		{"it is not told of DRA", Migrate, prepared, runs(repo + "4.5.2-4.8.1-distroless"), ds, "does not set KUBERNETES_ENABLE_DRA"},
		{"it loses GPUs", Migrate, prepared, runs(repo+"4.4.1-4.5.2-ubuntu22.04", told), ds, "may have no series"},
		{"it is told and late enough", Migrate, prepared, runs(repo+"4.5.2-4.8.1-distroless", told), nil, ""},
		{"a version that cannot be read", Migrate, prepared, runs(repo+"latest", told), nil, ""},
		{"on other nodes", Migrate, prepared, func(s *state) {
			runs(repo + "4.5.2")(s)
			s.daemonSet("dcgm").Spec.Template.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": "other"}
		}, nil, ""},
	})
}

func TestDRM150(t *testing.T) {
	t.Parallel()
	alike := func(s *state) {
		for _, n := range []string{"n1", "n2"} {
			s.node(n).Labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-80GB"
		}
	}
	pool := []string{"info pool/gpu"}
	try(t, "DRM150", []given{
		{"identical whole GPUs", Migrate, prepared, alike, pool, "identical whole GPUs (nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB), and nothing in the cluster selects, shares or falls back among devices: 1 pod of 1 owner would be served unchanged"},
		{"of one instance type", Migrate, prepared, func(s *state) {
			s.node("n1").Labels["node.kubernetes.io/instance-type"] = "p4d.24xlarge"
			s.node("n2").Labels["node.kubernetes.io/instance-type"] = "p4d.24xlarge"
		}, pool, "GPUs, as far as the machine's type tells, (node.kubernetes.io/instance-type=p4d.24xlarge)"},
		{"nobody has a device there", Migrate, prepared, func(s *state) { alike(s); s.Pods = s.Pods[:len(s.Pods)-1] }, nil, ""},
		{"two products", Migrate, prepared, func(s *state) { alike(s); s.node("n2").Labels["nvidia.com/gpu.product"] = "NVIDIA-L4" }, nil, ""},
		{"it cannot be known", Migrate, prepared, nil, nil, ""},
		{"shared", Migrate, prepared, func(s *state) { alike(s); s.node("n1").Labels["nvidia.com/gpu.replicas"] = "4" }, nil, ""},
		{"a workload selects by product", Migrate, prepared, func(s *state) {
			alike(s)
			s.pod("train").NodeLabels = needs("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB")
		}, nil, ""},
		{"a workload has a claim", Migrate, prepared, func(s *state) {
			alike(s)
			w := s.workload("explicit", "", 0)
			w.Template.Claims = []string{""}
		}, nil, ""},
		{"the pool has moved", Migrate, migrated, alike, nil, ""},
	})
}
