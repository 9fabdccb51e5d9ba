package checks

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func TestDRM007(t *testing.T) {
	t.Parallel()
	asks := func(s *state, exprs ...corev1.NodeSelectorRequirement) {
		ds := s.addDaemonSet("burn", map[string]string{"app": "burn"}, "", exprs...)
		ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{gpu: resource.MustParse("1")},
		}}}
	}
	pool := func(value string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
	}
	burn := []string{"blocker daemonset/kube-system/burn"}
	try(t, "DRM007", []given{
		{"a DaemonSet whose pod has a GPU", Migrate, prepared, func(s *state) {
			s.addDaemonSet("burn", nil, "")
			s.runDaemon("burn", "n1").Requests = []cluster.Request{{Container: "main", Resource: gpu, Count: 1}}
		}, burn, "use devices on node n1"},
		{"a DaemonSet whose pod is yet to come", Migrate, prepared, func(s *state) { asks(s) }, burn, "use devices on nodes n1, n2"},
		{"a DaemonSet of another pool", Migrate, prepared, func(s *state) { asks(s, pool("other")) }, nil, ""},
		{"a DaemonSet of the pool", Migrate, prepared, func(s *state) { asks(s, pool("gpu")) }, burn, ""},
		{"a DaemonSet without GPUs", Migrate, prepared, func(s *state) {
			s.addDaemonSet("logs", nil, "")
			s.runDaemon("logs", "n1")
		}, nil, ""},
		{"a static pod", Migrate, prepared, func(s *state) { s.addPod("static", "n1", 1).Static = true }, []string{"blocker pod/team/static"}, "a static pod of node n1"},
		{"a static pod without GPUs", Migrate, prepared, func(s *state) { s.addPod("static", "n1", 0).Static = true }, nil, ""},
		{"a finished static pod", Migrate, prepared, func(s *state) {
			p := s.addPod("static", "n1", 1)
			p.Static, p.Phase = true, corev1.PodFailed
		}, nil, ""},
		{"a DaemonSet's pod with a claim, on the way back", Rollback, migrated, func(s *state) {
			s.addDaemonSet("domain", nil, "")
			s.runDaemon("domain", "n2")
			s.claim("daemon", "compute-domain.nvidia.com", "n2", "daemon-0", "domain-n2")
		}, []string{"blocker daemonset/kube-system/domain"}, "node n2"},
		{"a DaemonSet's pod with a claim of another driver", Rollback, migrated, func(s *state) {
			s.addDaemonSet("net", nil, "")
			s.runDaemon("net", "n2")
			s.claim("nic", "net.example", "n2", "nic-0", "net-n2")
		}, nil, ""},
	})
}

func TestDRM016(t *testing.T) {
	t.Parallel()
	explicit := func(s *state) {
		s.addPod("explicit", "n2", 0).Claims = []string{"own"}
		s.claim("own", driver, "n2", "gpu-1", "explicit")
	}
	waits := func(class string) func(*state) {
		return func(s *state) {
			p := s.addPod("waits", "", 0)
			p.Requests = []cluster.Request{{Container: "main", Resource: corev1.ResourceName(cluster.ImplicitResourcePrefix + class), Count: 1}}
		}
	}
	try(t, "DRM016", []given{
		{"a claim of its own", Rollback, migrated, explicit, []string{"blocker replicaset/team/explicit"}, "pod explicit on node n2: holds 1 device by its claim own"},
		{"a class by its implicit name", Rollback, migrated, func(s *state) {
			p := s.addPod("implicit", "n2", 0)
			name := corev1.ResourceName("deviceclass.resource.kubernetes.io/gpu.nvidia.com")
			p.Requests = []cluster.Request{{Container: "main", Resource: name, Count: 1}}
			s.bridge("implicit", string(name), "n2", "gpu-1")
		}, []string{"blocker replicaset/team/implicit"}, "by asking for deviceclass.resource.kubernetes.io/gpu.nvidia.com"},
		{"a class by its implicit name, and no node yet", Rollback, migrated, waits("gpu.nvidia.com"), []string{"warning replicaset/team/waits"},
			"waits for a node and asks for deviceclass.resource.kubernetes.io/gpu.nvidia.com, which the device plugin cannot serve"},
		{"another driver's class by its implicit name, and no node yet", Rollback, migrated, func(s *state) {
			waits("nic")(s)
			s.Classes = append(s.Classes, resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "nic"}, Spec: class("", `device.driver == "net.example"`).Spec})
		}, nil, ""},
		{"the same for another pool", Rollback, migrated, func(s *state) {
			waits("gpu.nvidia.com")(s)
			s.pod("waits").NodeLabels = needs("karpenter.sh/nodepool", "other")
		}, nil, ""},
		{"a claim of its own, and no node yet", Rollback, migrated, func(s *state) {
			s.addPod("waits", "", 0).Claims = []string{"own"}
			c := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "own"}}
			c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com"}}}
			s.Claims = append(s.Claims, c)
		}, []string{"warning replicaset/team/waits"}, "waits for a node and for its claim own"},
		{"the plain name, and no node yet", Rollback, migrated, func(s *state) { s.addPod("waits", "", 1) }, nil, ""},
		{"the plain name by a generated claim", Rollback, migrated, nil, nil, ""},
		{"a claim of another driver", Rollback, migrated, func(s *state) {
			s.addPod("net", "n2", 0).Claims = []string{"nic"}
			s.claim("nic", "net.example", "n2", "nic-0", "net")
		}, nil, ""},
		{"finished", Rollback, migrated, func(s *state) { explicit(s); s.pod("explicit").Phase = corev1.PodSucceeded }, nil, ""},
		{"on another pool", Rollback, migrated, func(s *state) {
			s.addPod("explicit", "m1", 0).Claims = []string{"own"}
			s.claim("own", driver, "m1", "gpu-1", "explicit")
		}, nil, ""},
	})
}

func TestDRM018AndDRM023(t *testing.T) {
	t.Parallel()
	train, never := []string{"warning replicaset/team/train"}, []string{"blocker replicaset/team/train"}
	idle := func(s *state) { s.addPod("web", "n1", 0); s.budget("web", "web", 0) }
	try(t, "DRM018", []given{
		{"a budget that allows nothing now", Migrate, prepared, func(s *state) { s.budget("b", "train", 0) }, train, "budget team/b allows no disruption now (1 of 1 pods healthy, 1 wanted)"},
		{"500 pods of one workload", Migrate, prepared, func(s *state) {
			for i := range 499 {
				p := s.addPod(fmt.Sprintf("train-%d", i), "n2", 1)
				p.Labels, p.Owner = map[string]string{"app": "train"}, cluster.Owner{Kind: "ReplicaSet", Name: "train"}
			}
			s.budget("b", "train", 0)
		}, train, "500 pods on nodes n1, n2: budget team/b allows no disruption now"},
		{"every pod at all times: none may be away", Migrate, prepared, func(s *state) {
			s.budget("b", "train", 0)
			s.Budgets[0].Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0))
		}, never, "can never allow an eviction: maxUnavailable is 0"},
		{"every pod at all times: no share of them may be away", Migrate, prepared, func(s *state) {
			s.budget("b", "train", 0)
			s.Budgets[0].Spec.MaxUnavailable = ptr.To(intstr.FromString("0%"))
		}, never, "can never allow an eviction: maxUnavailable is 0%"},
		{"every pod at all times: all of them", Migrate, prepared, func(s *state) {
			s.budget("b", "train", 0)
			s.Budgets[0].Spec.MinAvailable = ptr.To(intstr.FromString("100%"))
		}, never, "can never allow an eviction: minAvailable is 100%, and it covers 1 pod"},
		{"every pod at all times: more than there are", Migrate, prepared, func(s *state) {
			s.budget("b", "train", 0)
			s.Budgets[0].Spec.MinAvailable = ptr.To(intstr.FromInt32(5))
			s.Budgets[0].Status.ExpectedPods, s.Budgets[0].Status.CurrentHealthy, s.Budgets[0].Status.DesiredHealthy = 4, 4, 5
		}, never, "can never allow an eviction: minAvailable is 5, and it covers 4 pods"},
		{"every pod at all times: as many as there are", Migrate, prepared, func(s *state) {
			s.budget("b", "train", 0)
			s.Budgets[0].Spec.MinAvailable = ptr.To(intstr.FromInt32(1))
		}, never, "can never allow an eviction: minAvailable is 1, and it covers 1 pod"},
		{"every pod at all times: half of one, rounded up", Migrate, prepared, func(s *state) {
			s.budget("b", "train", 0)
			s.Budgets[0].Spec.MinAvailable = ptr.To(intstr.FromString("50%"))
		}, never, "can never allow an eviction: minAvailable is 50%, and it covers 1 pod"},
		{"it passes: one of four is down", Migrate, prepared, func(s *state) { // kubernetes/kubectl#172 waits without a word
			s.budget("b", "train", 0)
			s.Budgets[0].Spec.MinAvailable = ptr.To(intstr.FromInt32(3))
			s.Budgets[0].Status.ExpectedPods, s.Budgets[0].Status.CurrentHealthy, s.Budgets[0].Status.DesiredHealthy = 4, 3, 3
		}, train, "allows no disruption now (3 of 4 pods healthy, 3 wanted)"},
		{"not counted since it was changed", Migrate, prepared, func(s *state) {
			s.budget("b", "train", 0)
			s.Budgets[0].Spec.MinAvailable, s.Budgets[0].Generation = ptr.To(intstr.FromInt32(1)), 2
		}, train, "allows no disruption now"},
		{"none may be away, however many there are", Migrate, prepared, func(s *state) {
			s.budget("b", "train", 0)
			s.Budgets[0].Spec.MaxUnavailable, s.Budgets[0].Generation = ptr.To(intstr.FromInt32(0)), 2
		}, never, "can never allow an eviction: maxUnavailable is 0"},
		{"none may be away, on the way back", Rollback, migrated, func(s *state) {
			s.budget("b", "train", 0)
			s.Budgets[0].Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0))
		}, never, ""},
		{"the way back of a node that the budget held evicts nobody", Rollback, prepared, func(s *state) {
			s.mark("n1", "gpu", false)
			s.budget("b", "train", 0)
			s.Budgets[0].Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0))
		}, nil, ""},
		{"a budget that allows one", Migrate, prepared, func(s *state) { s.budget("b", "train", 1) }, nil, ""},
		{"another workload's budget", Migrate, prepared, func(s *state) { s.budget("b", "serve", 0) }, nil, ""},
		{"on the way back", Rollback, migrated, func(s *state) { s.budget("b", "train", 0) }, train, ""},
		{"a pod without devices is not evicted", Migrate, prepared, idle, nil, ""},
		{"unless all are", Migrate, prepared, func(s *state) { idle(s); s.in.Drain = "all" }, []string{"warning replicaset/team/web"}, ""},
	})
	try(t, "DRM023", []given{
		{"two budgets", Migrate, prepared, func(s *state) { s.budget("a", "train", 1); s.budget("b", "train", 1) },
			[]string{"blocker replicaset/team/train"}, "covered by budgets team/a, team/b"},
		{"two budgets, a pod that has not started", Migrate, prepared, func(s *state) {
			s.budget("a", "train", 1)
			s.budget("b", "train", 1)
			s.pod("train").Phase = corev1.PodPending
		}, nil, ""},
		{"one budget", Migrate, prepared, func(s *state) { s.budget("a", "train", 1) }, nil, ""},
	})
}

func TestDRM019(t *testing.T) {
	t.Parallel()
	bare := func(s *state) { s.pod("train").Owner = cluster.Owner{} }
	local := func(s *state) { s.pod("train").LocalStorage = true }
	train, alone := []string{"blocker replicaset/team/train"}, "blocker pod/team/train"
	try(t, "DRM019", []given{
		{"nothing makes it again", Migrate, prepared, bare, []string{alone}, "on node n1: has no controller"},
		{"nothing makes it again, and that is wanted", Migrate, prepared, func(s *state) { bare(s); s.in.EvictUnmanaged = true }, nil, ""},
		{"local data", Migrate, prepared, local, train, "emptyDir"},
		{"local data that may go", Migrate, prepared, func(s *state) { local(s); s.in.DeleteEmptyDir = true }, nil, ""},
		{"both", Migrate, prepared, func(s *state) { bare(s); local(s) }, []string{alone, alone}, ""},
		{"a bare pod that a CSI driver looks after", Migrate, prepared, func(s *state) {
			p := s.addPod("mp-x7k2p", "n1", 0)
			p.Namespace, p.Owner = "mount-s3", cluster.Owner{}
			s.in.Drain = "all"
		}, []string{"blocker pod/mount-s3/mp-x7k2p"}, "the CSI driver makes and ends it"}, // awslabs/mountpoint-s3-csi-driver#930
		{"a mount pod without devices stays", Migrate, prepared, func(s *state) {
			p := s.addPod("mp-x7k2p", "n1", 0)
			p.Namespace, p.Owner = "mount-s3", cluster.Owner{}
		}, nil, ""},
		{"on the way back", Rollback, migrated, local, train, ""},
		{"the plugin's own pod stays", Migrate, prepared, func(s *state) { s.pod("plugin-n1").LocalStorage = true }, nil, ""},
		{"a pod without devices stays", Migrate, prepared, func(s *state) { s.addPod("web", "n1", 0).LocalStorage = true }, nil, ""},
		{"unless all go", Migrate, prepared, func(s *state) { s.addPod("web", "n1", 0).LocalStorage = true; s.in.Drain = "all" },
			[]string{"blocker replicaset/team/web"}, ""},
		{"a finished pod", Migrate, prepared, func(s *state) {
			s.addPod("job", "n1", 0).LocalStorage = true
			s.pod("job").Phase = corev1.PodSucceeded
			s.in.Drain = "all"
		}, nil, ""},
	})
}

func TestDRM020(t *testing.T) {
	t.Parallel()
	try(t, "DRM020", []given{
		{"as many as a claim holds", Migrate, prepared, func(s *state) { s.pod("train").Requests[0].Count = 32 }, nil, ""},
		{"one more", Migrate, prepared, func(s *state) { s.pod("train").Requests[0].Count = 33 }, []string{"blocker replicaset/team/train"}, "asks for 33 of nvidia.com/gpu"},
		{"one more, in two containers", Migrate, prepared, func(s *state) {
			s.pod("train").Requests = []cluster.Request{{Container: "a", Resource: gpu, Count: 20}, {Container: "b", Resource: gpu, Count: 13}}
		}, []string{"blocker replicaset/team/train"}, ""},
		{"an init container's are used again", Migrate, prepared, func(s *state) {
			s.pod("train").Requests = []cluster.Request{{Container: "a", Resource: gpu, Count: 32, Init: true}, {Container: "b", Resource: gpu, Count: 32}}
		}, nil, ""},
		// K1.5c: the class makes it so on every pool, for pods that no selector keeps to nodes.
		{"on another pool", Migrate, prepared, func(s *state) { s.addPod("wide", "m1", 33) }, []string{"blocker replicaset/team/wide"}, "bound to no node of any pool"},
		{"on another pool, and prepare maps nothing", Prepare, untouched, func(s *state) { s.addPod("wide", "m1", 33) }, []string{"warning replicaset/team/wide"}, ""},
		{"on another pool, and the class is there", Migrate, prepared, func(s *state) {
			s.addPod("wide", "m1", 33)
			s.Classes = append(s.Classes, class("gpu"))
		}, []string{"warning replicaset/team/wide"}, ""},
		{"pinned to another pool", Migrate, prepared, func(s *state) {
			s.addPod("wide", "m1", 33).Placement = &cluster.Placement{NodeSelector: map[string]string{"pool": "m"}}
		}, nil, ""},
	})
}
