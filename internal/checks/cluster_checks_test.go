package checks

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func serverVersion(server, emulated string) func(*state) {
	return func(s *state) { s.Identity.ServerVersion, s.Identity.EmulationVersion = server, emulated }
}

func TestDRM001(t *testing.T) {
	t.Parallel()
	try(t, "DRM001", []given{
		{"the floor itself", Migrate, prepared, serverVersion("v1.36.0", ""), nil, ""},
		{"a vendor's build of it", Migrate, prepared, serverVersion("v1.36.3-gke.1234", ""), nil, ""},
		{"below it", Migrate, prepared, serverVersion("v1.35.9", ""), []string{"blocker server"}, "v1.35.9"},
		{"below it, before prepare", Prepare, untouched, serverVersion("v1.35.9", ""), []string{"blocker server"}, "v1.35.9"},
		{"a way back is open on any version", Rollback, migrated, serverVersion("v1.35.9", ""), nil, ""},
		{"emulates an older one", Migrate, prepared, serverVersion("v1.37.2", "1.35"), []string{"blocker server"}, "emulates Kubernetes 1.35"},
		{"emulates one that will do", Migrate, prepared, serverVersion("v1.37.2", "1.36"), nil, ""},
		{"the newest whose rules are known", Migrate, prepared, serverVersion("v1.38.4", ""), nil, ""},
		{"newer than that", Migrate, prepared, serverVersion("v1.39.0-alpha.1", ""), []string{"warning server"}, "acts as Kubernetes v1.39.0-alpha.1; the checks know the rules of releases up to 1.38"},
		{"newer, before prepare", Prepare, untouched, serverVersion("v2.0.0", ""), []string{"warning server"}, ""},
		{"newer, and acts as one that is known", Migrate, prepared, serverVersion("v1.39.1", "1.38"), nil, ""},
		{"says nothing", Migrate, prepared, serverVersion("", ""), []string{"unknown server"}, "cannot be read"},
	})
}

func kubelet(version string, nodes ...string) func(*state) {
	return func(s *state) {
		for _, n := range nodes {
			s.node(n).Status.NodeInfo.KubeletVersion = version
		}
	}
}

func TestDRM002(t *testing.T) {
	t.Parallel()
	try(t, "DRM002", []given{
		{"the floor itself", Migrate, prepared, kubelet("v1.36.0-eks-1a2b", "n1", "n2"), nil, ""},
		{"1.35 counts as below", Migrate, prepared, kubelet("v1.35.4", "n1"), []string{"blocker node/n1"}, "kubelet v1.35.4 is below"},
		{"two nodes of one version are one finding", Migrate, prepared, kubelet("v1.34.4", "n1", "n2"), []string{"blocker pool/gpu"}, "nodes n1, n2: kubelet v1.34.4"},
		{"another pool's kubelet", Migrate, prepared, kubelet("v1.35.4", "m1"), nil, ""},
		{"a node that does not say", Migrate, prepared, kubelet("", "n2"), []string{"unknown node/n2"}, "cannot be read"},
		{"a node that has moved already", Migrate, migrated, kubelet("v1.35.4", "n1"), nil, ""},
	})
}

func TestDRM003(t *testing.T) {
	t.Parallel()
	helm := func(name string) func(*state) {
		return func(s *state) {
			s.daemonSet(name).Annotations = map[string]string{"meta.helm.sh/release-name": "nvdp", "meta.helm.sh/release-namespace": "gpu"}
		}
	}
	try(t, "DRM003", []given{
		{"a Helm release, before prepare", Prepare, untouched, helm("plugin"), []string{"blocker daemonset/kube-system/plugin"}, "Helm release gpu/nvdp"},
		{"a Helm release whose values heed the label", Migrate, prepared, helm("plugin"), nil, ""},
		{"a Helm release that was edited in place", Migrate, prepared, func(s *state) {
			helm("plugin")(s)
			s.daemonSet("plugin").ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "helm"}, {Manager: "dramigrate"}}
		}, []string{"warning daemonset/kube-system/plugin"}, "takes the edit back"},
		{"a Helm release that does not heed it", Migrate, untouched, helm("plugin"), []string{"blocker daemonset/kube-system/plugin"}, "Helm release gpu/nvdp"},
		{"an operator's without a switch, in prepare", Prepare, untouched, func(s *state) {
			s.daemonSet("plugin").OwnerReferences = []metav1.OwnerReference{{APIVersion: "acme.io/v1", Kind: "GPUStack", Name: "x"}}
		}, []string{"warning daemonset/kube-system/plugin"}, "cannot be moved in place"},
		{"the GPU Operator's, which has a switch", Migrate, untouched, byOperator, nil, ""},
		{"kubectl", Prepare, untouched, func(s *state) {
			s.daemonSet("plugin").Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: ""}
		}, nil, ""},
		{"an owned plugin of other nodes", Migrate, prepared, func(s *state) {
			ds := s.addDaemonSet("second", map[string]string{"k8s-app": "nvidia-gpu-device-plugin"}, "/var/lib/kubelet/device-plugins",
				corev1.NodeSelectorRequirement{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpIn, Values: []string{"other"}})
			ds.Labels = map[string]string{"addonmanager.kubernetes.io/mode": "Reconcile"}
			s.runDaemon("second", "m1")
		}, nil, ""},
		{"an owned plugin of the pool's nodes", Migrate, prepared, func(s *state) {
			ds := s.addDaemonSet("second", map[string]string{"k8s-app": "nvidia-gpu-device-plugin"}, "/var/lib/kubelet/device-plugins",
				corev1.NodeSelectorRequirement{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpIn, Values: []string{"gpu"}})
			ds.Labels = map[string]string{"addonmanager.kubernetes.io/mode": "Reconcile"}
		}, []string{"blocker daemonset/kube-system/second"}, "addon manager in mode Reconcile"},
		{"an owned driver that its owner has placed", Migrate, prepared, helm("driver"), nil, ""},
		{"an owned driver that runs anywhere", Prepare, prepared, func(s *state) {
			helm("driver")(s)
			s.daemonSet("driver").Spec.Template.Spec.Affinity = nil
		}, []string{"blocker daemonset/kube-system/driver"}, "Helm release gpu/nvdp"},
		{"the way back", Rollback, migrated, helm("plugin"), nil, ""},
	})
}

func TestDRM004(t *testing.T) {
	t.Parallel()
	without := func(nodes ...string) func(*state) {
		return func(s *state) {
			for _, n := range nodes {
				s.stop("plugin", n)
			}
		}
	}
	try(t, "DRM004", []given{
		{"no DaemonSet at all", Prepare, untouched, func(s *state) { s.DaemonSets = nil; without("m1", "n1", "n2")(s) },
			[]string{"warning nodes"}, "m1, n1, n2: advertises nvidia.com/gpu"},
		{"one node advertises by itself", Migrate, prepared, without("n2"), []string{"blocker node/n2"}, "no pod of a device plugin's DaemonSet"},
		{"a node of another pool does", Migrate, prepared, without("m1"), nil, ""},
		// A killed run has turned the plugin off; the kubelet still reports its devices.
		{"a node between the mechanisms", Migrate, prepared, func(s *state) {
			without("n2")(s)
			s.mark("n2", "gpu", false)
			s.node("n2").Labels["dramigrate.dev/allocation"] = "switching"
		}, nil, ""},
		{"a label that no run has set", Migrate, prepared, func(s *state) {
			without("n2")(s)
			s.node("n2").Labels["dramigrate.dev/allocation"] = "switching"
		}, []string{"blocker node/n2"}, ""},
		{"Bottlerocket with a DaemonSet beside", Migrate, prepared, func(s *state) {
			s.node("n1").Status.NodeInfo.OSImage = "Bottlerocket OS 1.64.0 (aws-k8s-1.36-nvidia)"
		}, []string{"unknown node/n1"}, "nvidia-k8s-device-plugin"},
		{"Bottlerocket without NVIDIA's part", Migrate, prepared, func(s *state) {
			s.node("n1").Status.NodeInfo.OSImage = "Bottlerocket OS 1.64.0 (aws-k8s-1.36)"
		}, nil, ""},
		{"EKS Auto Mode with a DaemonSet beside", Migrate, prepared, label("n1", "eks.amazonaws.com/compute-type", "auto"), []string{"unknown node/n1"}, "EKS Auto Mode"},
		{"AKS managed with a DaemonSet beside", Migrate, prepared, label("n1", "kubernetes.azure.com/dcgm-exporter", "enabled"), []string{"unknown node/n1"}, "AKS manages"},
		{"a built-in plugin that is off", Migrate, prepared, func(s *state) {
			s.node("n1").Labels["kubernetes.azure.com/dcgm-exporter"] = "enabled"
			s.node("n1").Status.Allocatable = corev1.ResourceList{}
		}, nil, ""},
		{"a node that advertises nothing", Migrate, prepared, func(s *state) {
			without("n2")(s)
			s.node("n2").Status.Allocatable = corev1.ResourceList{}
		}, nil, ""},
	})
}

func TestDRM005(t *testing.T) {
	t.Parallel()
	two := func(s *state) {
		s.Classes = []resourcev1.DeviceClass{class("gpu.nvidia.com"), class("mine")}
		s.Classes[1].CreationTimestamp = metav1.Unix(9, 0)
	}
	try(t, "DRM005", []given{
		{"two", Migrate, prepared, two, []string{"blocker deviceclass/gpu.nvidia.com"}, "as deviceclass/mine does, which is the one in force"},
		{"two, before prepare", Prepare, untouched, two, []string{"blocker deviceclass/gpu.nvidia.com"}, ""},
		{"two, one to be deleted", Unprepare, rolledBack, two, []string{"blocker deviceclass/gpu.nvidia.com"}, ""},
		{"two, on the way back of a pool", Rollback, migrated, two, nil, ""},
		{"one", Migrate, prepared, func(s *state) {
			s.Classes = []resourcev1.DeviceClass{class("mine", `device.driver == "gpu.nvidia.com"`)}
		}, nil, ""},
	})
}

func TestDRM006(t *testing.T) {
	t.Parallel()
	both := func(s *state) { s.addPod("both", "m1", 1).Claims = []string{"channel"} }
	live := func(s *state) { s.Classes = migrated().Classes }
	try(t, "DRM006", []given{
		{"the mapping would break it", Migrate, prepared, both, []string{"blocker replicaset/team/both"}, "once a DeviceClass maps that name"},
		{"its claim is not even made yet", Migrate, prepared, func(s *state) { s.addPod("both", "", 1).Claims = []string{""} },
			[]string{"blocker replicaset/team/both"}, ""},
		{"told in time", Prepare, untouched, both, []string{"warning replicaset/team/both"}, ""},
		{"the harm is done already", Migrate, prepared, func(s *state) { both(s); live(s) },
			[]string{"warning replicaset/team/both"}, "deviceclass/gpu.nvidia.com maps already"},
		{"it has its GPU through DRA", Migrate, prepared, func(s *state) {
			both(s)
			live(s)
			s.bridge("both", gpu, "m1", "gpu-0")
		}, nil, ""},
		{"a claim alone", Migrate, prepared, func(s *state) { s.addPod("claim", "m1", 0).Claims = []string{"channel"} }, nil, ""},
		{"the resource alone", Migrate, prepared, func(s *state) { s.addPod("legacy", "m1", 1) }, nil, ""},
		{"finished", Migrate, prepared, func(s *state) { both(s); s.pod("both").Phase = corev1.PodSucceeded }, nil, ""},
	})
}

func TestDRM024(t *testing.T) {
	t.Parallel()
	try(t, "DRM024", []given{
		// A rollback ends what holds claims on the nodes; they are not named one by one.
		{"a pool has moved", Unprepare, migrated, nil, []string{"blocker nodes"}, "is being moved as part of pool gpu"},
		{"a label without an annotation", Unprepare, rolledBack, func(s *state) { s.node("m1").Labels["dramigrate.dev/allocation"] = "switching" },
			[]string{"blocker node/m1"}, "carries label dramigrate.dev/allocation=switching"},
		{"an annotation that cannot be read", Unprepare, rolledBack, func(s *state) { s.node("m1").Annotations["dramigrate.dev/state"] = "?" },
			[]string{"blocker node/m1"}, "carries annotation dramigrate.dev/state"},
		{"a claim is held though nothing says that the node moved", Unprepare, rolledBack, func(s *state) {
			s.addPod("explicit", "m1", 0)
			s.claim("own", driver, "m1", "gpu-0", "explicit")
		}, []string{"blocker node/m1"}, "claim team/own holds 1 device"},
		{"another driver's claim", Unprepare, rolledBack, func(s *state) {
			s.addPod("explicit", "m1", 0)
			s.claim("own", "net.example", "m1", "nic-0", "explicit")
		}, nil, ""},
	})
}

func TestDRM028(t *testing.T) {
	t.Parallel()
	named := func(name string) func(*state) {
		return func(s *state) {
			s.Classes = []resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		}
	}
	in := prepared()
	named("dramigrate-nvidia-gpu")(in)
	input := in.of(Migrate)
	input.NewClass = "dramigrate-nvidia-gpu"
	if got := brief(Run(input), "DRM028"); len(got) != 1 || got[0] != "blocker deviceclass/dramigrate-nvidia-gpu" {
		t.Errorf("a class of the name that does not carry the resource: %v", got)
	}
	input.NewClass = "" // the class in force is adopted
	if got := brief(Run(input), "DRM028"); len(got) != 0 {
		t.Errorf("nothing is created: %v", got)
	}
	in = prepared()
	named("another")(in)
	input = in.of(Migrate)
	input.NewClass = "dramigrate-nvidia-gpu"
	if got := brief(Run(input), "DRM028"); len(got) != 0 {
		t.Errorf("another name: %v", got)
	}
}

func TestDRM029(t *testing.T) {
	t.Parallel()
	try(t, "DRM029", []given{
		{"a value of somebody's own", Migrate, prepared, label("n1", "dramigrate.dev/allocation", "banana"), []string{"blocker node/n1"}, "dramigrate.dev/allocation=banana"},
		{"the same on the way back", Rollback, migrated, label("n1", "dramigrate.dev/allocation", "banana"), []string{"blocker node/n1"}, ""},
		{"a node of another pool", Migrate, prepared, label("m1", "dramigrate.dev/allocation", "banana"), nil, ""},
		{"a state of the gate", Rollback, migrated, label("n1", "dramigrate.dev/allocation", "dra"), nil, ""},
	})
}
