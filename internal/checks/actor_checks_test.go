package checks

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// labels gives a label to the nodes of pool gpu.
func labels(key, value string) func(*state) {
	return all(label("n1", key, value), label("n2", key, value))
}

func annotate(node, key, value string) func(*state) {
	return func(s *state) { s.node(node).Annotations[key] = value }
}

func operators(list ...cluster.OperatorObject) func(*state) {
	return func(s *state) { s.Operators = list }
}

func unread(parts ...string) func(*state) {
	return func(s *state) {
		for _, p := range parts {
			s.Unknown = append(s.Unknown, cluster.Unknown{Part: p, Reason: "forbidden"})
		}
	}
}

// controller adds the pod of a controller.
func controller(image string) func(*state) {
	return func(s *state) { s.addPod("controller", "cpu", 0).Images = []string{image} }
}

func owned(kind, name string) func(*state) {
	return func(s *state) {
		s.daemonSet("plugin").OwnerReferences = []metav1.OwnerReference{{APIVersion: "nvidia.com/v1", Kind: kind, Name: name, Controller: ptr.To(true)}}
	}
}

// remedies are the remedies of a check's findings.
func remedies(findings []Finding, code string) string {
	var out []string
	for _, f := range findings {
		if f.Code == code {
			out = append(out, f.Remedy)
		}
	}
	return strings.Join(out, "\n")
}

// B-049: a GPUCluster beside a ClusterPolicy.
func TestDRM080(t *testing.T) {
	t.Parallel()
	both := operators(cluster.OperatorObject{Kind: "ClusterPolicy", Name: "cluster-policy"}, cluster.OperatorObject{Kind: "GPUCluster", Name: "gpu-cluster", State: "ready"})
	try(t, "DRM080", []given{
		{"beside a ClusterPolicy", Migrate, prepared, both, []string{"blocker gpucluster/gpu-cluster"}, "(state ready)"},
		{"before prepare", Prepare, untouched, both, []string{"blocker gpucluster/gpu-cluster"}, ""},
		{"seen by what it runs alone", Migrate, prepared, all(unread(cluster.PartGPUClusters), owned("GPUCluster", "gpu-cluster")), []string{"blocker daemonset/kube-system/plugin"}, "operator GPUCluster/gpu-cluster"},
		{"a ClusterPolicy alone", Migrate, prepared, operators(cluster.OperatorObject{Kind: "ClusterPolicy", Name: "cluster-policy"}), nil, ""},
		{"unread, and the operator is there", Migrate, prepared, all(unread(cluster.PartGPUClusters), owned("ClusterPolicy", "cluster-policy")), []string{"warning gpuclusters"}, "could not be read (forbidden)"},
		{"unread, and no operator is there", Migrate, prepared, unread(cluster.PartGPUClusters), nil, ""},
	})
}

// B-043: a node in the middle of a driver upgrade; B-041: the operator uncordons it.
func TestDRM081(t *testing.T) {
	t.Parallel()
	state := func(value string) func(*state) { return label("n1", "nvidia.com/gpu-driver-upgrade-state", value) }
	n1 := []string{"blocker node/n1"}
	try(t, "DRM081", []given{
		{"it waits for its upgrade", Migrate, prepared, state("upgrade-required"), n1, "upgrade-required"},
		{"it waits and is to be left alone", Migrate, prepared, all(state("upgrade-required"), label("n1", "nvidia.com/gpu-driver-upgrade.skip", "true")), nil, ""},
		{"in the middle of it, whatever the other label says", Migrate, prepared, all(state("drain-required"), label("n1", "nvidia.com/gpu-driver-upgrade.skip", "true")), n1, ""},
		{"about to be uncordoned", Migrate, prepared, state("uncordon-required"), n1, ""},
		{"a state that is new", Migrate, prepared, state("reboot-required"), n1, ""},
		{"failed", Migrate, prepared, state("upgrade-failed"), n1, "upgrade-failed"},
		{"done", Migrate, prepared, state("upgrade-done"), nil, ""},
		{"on the way back", Rollback, migrated, state("drain-required"), []string{"warning node/n1"}, ""},
		{"on another pool", Migrate, prepared, label("m1", "nvidia.com/gpu-driver-upgrade-state", "drain-required"), nil, ""},
	})
}

func TestDRM082(t *testing.T) {
	t.Parallel()
	auto := operators(cluster.OperatorObject{Kind: "ClusterPolicy", Name: "p", AutoUpgrade: ptr.To(true)})
	try(t, "DRM082", []given{
		{"by itself", Migrate, prepared, auto, []string{"info clusterpolicy/p"}, "nothing keeps it off nodes n1, n2"},
		{"one node is left out", Migrate, prepared, all(auto, label("n1", "nvidia.com/gpu-driver-upgrade.skip", "true")), []string{"info clusterpolicy/p"}, "nothing keeps it off node n2"},
		{"all are", Migrate, prepared, all(auto, labels("nvidia.com/gpu-driver-upgrade.skip", "true")), nil, ""},
		{"the host's driver", Migrate, prepared, all(auto, labels("nvidia.com/gpu.deploy.driver", "pre-installed")), nil, ""},
		{"not by itself", Migrate, prepared, operators(cluster.OperatorObject{Kind: "ClusterPolicy", AutoUpgrade: ptr.To(false)}), nil, ""},
		{"it installs none", Migrate, prepared, operators(cluster.OperatorObject{Kind: "ClusterPolicy", AutoUpgrade: ptr.To(true), Driver: ptr.To(false)}), nil, ""},
		{"not said", Migrate, prepared, operators(cluster.OperatorObject{Kind: "ClusterPolicy"}), nil, ""},
	})
	s := prepared()
	auto(s)
	if got, want := remedies(Run(s.of(Migrate)), "DRM082"), "`kubectl label node n1 n2 nvidia.com/gpu-driver-upgrade.skip=true`"; !strings.Contains(got, want) {
		t.Errorf("remedy %q, want %q", got, want)
	}
}

// B-047: the driver manager turns the driver off by a label of its own.
func TestDRM083(t *testing.T) {
	t.Parallel()
	try(t, "DRM083", []given{
		{"set", Migrate, prepared, operators(cluster.OperatorObject{Kind: "NVIDIADriver", Name: "d", EvictionNodeLabel: "nvidia.com/dra-kubelet-plugin"}),
			[]string{"warning nvidiadriver/d"}, "NODE_LABEL_FOR_GPU_POD_EVICTION=nvidia.com/dra-kubelet-plugin"},
		{"not set", Migrate, prepared, operators(cluster.OperatorObject{Kind: "ClusterPolicy"}), nil, ""},
	})
}

func TestDRM084(t *testing.T) {
	t.Parallel()
	kernel := running("kernel", "nvidia-driver-daemonset", "m1")
	operands := label("n1", "nvidia.com/gpu.deploy.operands", "false")
	try(t, "DRM084", []given{
		{"B-029: operands off, and the operator has the driver", Migrate, prepared, all(kernel, operands), []string{"blocker node/n1"}, "kernel driver too"},
		{"operands off, and the host has it", Migrate, prepared, operands, []string{"warning node/n1"}, "part of the host"},
		{"operands on", Migrate, prepared, all(kernel, label("n1", "nvidia.com/gpu.deploy.operands", "true")), nil, ""},
		{"B-031: the dead label", Migrate, prepared, label("n1", "nvidia.com/gpu-operator.resource-allocation.mode", "dra"), []string{"warning node/n1"}, "resource-allocation.mode=dra is read by no release"},
		{"B-037: an empty value", Migrate, prepared, label("n1", "nvidia.com/gpu.deploy.device-plugin", ""), []string{"warning node/n1"}, "empty value of nvidia.com/gpu.deploy.device-plugin"},
		{"on another pool", Migrate, prepared, label("m1", "nvidia.com/gpu.deploy.device-plugin", ""), nil, ""},
	})
}

// B-035: the kernel driver's pod was made anew; B-039: its manager uncordons the node.
func TestDRM085(t *testing.T) {
	t.Parallel()
	kernel := running("kernel", "nvidia-driver-daemonset", "n1", "n2")
	try(t, "DRM085", []given{
		{"labels are paused", Migrate, prepared, label("n1", "nvidia.com/gpu.deploy.dcgm", "paused-for-driver-upgrade"), []string{"blocker node/n1"}, "nvidia.com/gpu.deploy.dcgm=paused-for-driver-upgrade"},
		{"a value of somebody's own is paused", Migrate, prepared, label("n1", "nvidia.com/gpu.deploy.device-plugin", "x_paused-for-driver-upgrade"), []string{"blocker node/n1"}, ""},
		{"its pod is coming up", Migrate, prepared, all(kernel, func(s *state) { s.pod("kernel-n1").Ready, s.pod("kernel-n1").Waiting = false, "PodInitializing" }),
			[]string{"blocker node/n1"}, "the pod of the GPU's driver is not ready (PodInitializing)"},
		{"its pod is on its way out", Migrate, prepared, all(kernel, func(s *state) { s.pod("kernel-n1").Terminating = true }), []string{"blocker node/n1"}, "being replaced"},
		{"its pod is ready", Migrate, prepared, kernel, nil, ""},
		{"on the way back", Rollback, migrated, label("n1", "nvidia.com/gpu.deploy.dcgm", "paused-for-driver-upgrade"), []string{"warning node/n1"}, ""},
		{"on another pool", Migrate, prepared, label("m1", "nvidia.com/gpu.deploy.dcgm", "paused-for-driver-upgrade"), nil, ""},
	})
}

// B-161: it adds nodes for pods that wait; B-159: it cannot begin at none.
func TestDRM086(t *testing.T) {
	t.Parallel()
	image := func(version string) func(*state) {
		return controller("registry.k8s.io/autoscaling/cluster-autoscaler:" + version)
	}
	eks := all(labels("eks.amazonaws.com/nodegroup", "gpu-ng"), labels("k8s.amazonaws.com/accelerator", "nvidia-l4"))
	pod := "warning pod/team/controller"
	try(t, "DRM086", []given{
		{"none is seen", Migrate, prepared, nil, nil, ""},
		{"none is seen, on EKS", Migrate, prepared, eks, nil, ""},
		{"on EKS", Migrate, prepared, all(image("v1.37.0"), eks), []string{pod, "info nodegroup/gpu-ng"}, "label k8s.amazonaws.com/accelerator=nvidia-l4 and nothing allocatable counts as not ready"},
		{"too old for DRA", Migrate, prepared, image("v1.34.2"), []string{pod, pod + "/version"}, "half-moved group"},
		{"old enough", Migrate, prepared, image("v1.35.0"), []string{pod}, ""},
		{"a version that nobody can read", Migrate, prepared, image("latest"), []string{pod}, ""},
		{"by its label", Migrate, prepared, func(s *state) { s.addPod("controller", "cpu", 0).Labels["k8s-app"] = "cluster-autoscaler" }, []string{pod}, ""},
		{"GKE runs it out of sight", Migrate, prepared, labels("cloud.google.com/gke-nodepool", "l4"), []string{"info nodegroup/l4"}, "cannot be seen"},
		{"AKS runs it out of sight", Migrate, prepared, labels("kubernetes.azure.com/agentpool", "gpunp"), []string{"info nodegroup/gpunp"}, "cannot be seen"},
		{"nothing is left to move", Migrate, migrated, image("v1.37.0"), nil, ""},
		{"on the way back", Rollback, migrated, all(image("v1.37.0"), eks), []string{pod}, ""},
	})
	for what, want := range map[string]string{
		"eks.amazonaws.com/nodegroup":    "--nodegroup-name g --scaling-config minSize=2,maxSize=2,desiredSize=2",
		"cloud.google.com/gke-nodepool":  "node-pools update g --cluster CLUSTER --location LOCATION --no-enable-autoscaling",
		"kubernetes.azure.com/agentpool": "--name g --disable-cluster-autoscaler",
		"alpha.eksctl.io/nodegroup-name": "eksctl scale nodegroup --cluster CLUSTER --name g --nodes 2 --nodes-min 2 --nodes-max 2",
	} {
		s := prepared()
		all(image("v1.37.0"), labels(what, "g"))(s)
		if got := remedies(Run(s.of(Migrate)), "DRM086"); !strings.Contains(got, want) {
			t.Errorf("%s: remedies %q, want one with %q", what, got, want)
		}
	}
}

// B-163: a node that Karpenter never counts as initialized is never removed.
func TestDRM087(t *testing.T) {
	t.Parallel()
	made := labels("karpenter.sh/registered", "true")
	try(t, "DRM087", []given{
		{"its nodes", Migrate, prepared, made, []string{"warning pool/gpu"}, "2 nodes are Karpenter's (whether it heeds DRA cannot be seen)"},
		{"its nodes and itself", Migrate, prepared, all(made, controller("public.ecr.aws/karpenter/controller:1.14.1")), []string{"warning pod/team/controller"}, "Karpenter 1.14.1; whether it runs with --ignore-dra-requests=false cannot be seen"},
		{"a label of that name alone", Migrate, prepared, nil, nil, ""},
		{"a node on DRA that is not initialized", Migrate, migrated, made, []string{"warning pool/gpu"}, "neither consolidates nor removes it"},
		{"a node on DRA that is", Migrate, migrated, all(made, labels("karpenter.sh/initialized", "true")), nil, ""},
	})
}

func TestDRM088(t *testing.T) {
	t.Parallel()
	opened := time.Unix(1, 0) // as fixture.mark says
	late := func(seconds int) func(*state) {
		return func(s *state) {
			s.Nodes = append(s.Nodes, gpuNode("n3", "gpu", 2))
			s.node("n3").CreationTimestamp = metav1.NewTime(opened.Add(time.Duration(seconds) * time.Second))
			s.Sort()
		}
	}
	try(t, "DRM088", []given{
		{"no group is known", Migrate, prepared, nil, nil, ""},
		{"a node group", Migrate, prepared, labels("eks.amazonaws.com/nodegroup", "g"), []string{"info nodegroup/g"}, "nodes that EKS adds to g later need dramigrate.dev/allocation=dra"},
		{"two of them", Migrate, prepared, all(label("n1", "eks.amazonaws.com/nodegroup", "a"), label("n2", "eks.amazonaws.com/nodegroup", "b")), []string{"info nodegroups"}, "adds to a, b later"},
		{"nothing is left to move", Migrate, migrated, labels("eks.amazonaws.com/nodegroup", "g"), nil, ""},
	})
	for name, tt := range map[string]struct {
		seconds int
		want    int
	}{"younger than the move": {60, 1}, "older than the move": {-60, 0}} {
		s := migrated()
		late(tt.seconds)(s)
		in := s.of(Migrate)
		in.Pool.Nodes = []string{"n1", "n2", "n3"}
		if got := brief(Run(in), "DRM088"); len(got) != tt.want || tt.want > 0 && got[0] != "warning node/n3" {
			t.Errorf("a node %s: %v, want %d warnings", name, got, tt.want)
		}
	}
	for _, tt := range []struct {
		change func(*state)
		want   string
	}{
		{labels("cloud.google.com/gke-nodepool", "g"), "gcloud container node-pools update g --cluster CLUSTER --location LOCATION --node-labels=dramigrate.dev/allocation=dra`, with the labels that the pool has now"},
		{labels("eks.amazonaws.com/nodegroup", "g"), "aws eks update-nodegroup-config --cluster-name CLUSTER --nodegroup-name g --labels 'addOrUpdateLabels={dramigrate.dev/allocation=dra}'"},
		{labels("kubernetes.azure.com/agentpool", "g"), "az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name g --labels dramigrate.dev/allocation=dra`, with the labels that the pool has now"},
		{labels("karpenter.sh/registered", "true"), `kubectl patch nodepool gpu --type merge -p '{"spec":{"template":{"metadata":{"labels":{"dramigrate.dev/allocation":"dra"}}}}}'`},
		{all(annotate("n1", "machine.openshift.io/machine", "openshift-machine-api/gpu-set-x7k2q"), annotate("n2", "machine.openshift.io/machine", "openshift-machine-api/gpu-set-9b4df")),
			`oc -n openshift-machine-api patch machineset gpu-set --type merge -p '{"spec":{"template":{"spec":{"metadata":{"labels":{"dramigrate.dev/allocation":"dra"}}}}}}'`},
	} {
		s := prepared()
		tt.change(s)
		if got := remedies(Run(s.of(Migrate)), "DRM088"); !strings.Contains(got, tt.want) || !strings.Contains(got, "not earlier") {
			t.Errorf("remedies %q, want one with %q", got, tt.want)
		}
	}
}

func TestDRM089(t *testing.T) {
	t.Parallel()
	kured := func(lock string) func(*state) {
		return func(s *state) {
			ds := s.addDaemonSet("kured", nil, "")
			ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "kured", Image: "ghcr.io/kubereboot/kured:1.20.0"}}
			if lock != "" {
				ds.Annotations = map[string]string{"weave.works/kured-node-lock": lock}
			}
		}
	}
	needed := annotate("n1", "weave.works/kured-most-recent-reboot-needed", "2026-09-01T00:00:00Z")
	try(t, "DRM089", []given{
		{"it is there", Migrate, prepared, kured(""), []string{"info daemonset/kube-system/kured"}, "reboots nodes that need it"},
		{"a node needs a reboot", Migrate, prepared, all(kured(""), needed), []string{"warning node/n1"}, "kured means to reboot it"},
		{"a node is being rebooted", Migrate, prepared, all(kured(`{"nodeID":"n1"}`), annotate("n1", "weave.works/kured-reboot-in-progress", "2026-09-01T00:00:00Z")), []string{"blocker node/n1"}, "is rebooting it"},
		{"the lock is held for a node of the pool", Migrate, prepared, kured(`{"nodeID":"n2","metadata":{"unschedulable":false},"created":"2026-09-01T00:00:00Z"}`), []string{"blocker node/n2"}, "lock is held for it"},
		{"and is one of several", Migrate, prepared, kured(`{"maxOwners":2,"locks":[{"nodeID":"cpu"},{"nodeID":"n2"}]}`), []string{"blocker node/n2"}, ""},
		{"on the way back", Rollback, migrated, kured(`{"nodeID":"n2"}`), []string{"warning node/n2"}, ""},
		{"held by hand", Migrate, prepared, all(kured(`{"nodeID":"manual"}`), needed), nil, ""},
		{"its annotations, and no kured", Migrate, prepared, needed, nil, ""},
	})
}

func TestDRM090(t *testing.T) {
	t.Parallel()
	condition := func(name string, status corev1.ConditionStatus) func(*state) {
		return func(s *state) {
			n := s.node("n1")
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(name), Status: status, Reason: "R"})
		}
	}
	n1 := []string{"warning node/n1"}
	try(t, "DRM090", []given{
		{"EKS finds a GPU ill", Migrate, prepared, condition("AcceleratedHardwareReady", corev1.ConditionFalse), n1, "AcceleratedHardwareReady is False (R)"},
		{"EKS finds it well", Migrate, prepared, condition("AcceleratedHardwareReady", corev1.ConditionTrue), nil, ""},
		{"AKS finds the plugin ill", Migrate, prepared, condition("UnhealthyNvidiaDevicePlugin", corev1.ConditionTrue), n1, "is True (R)"},
		{"AKS looks at the plugin", Migrate, prepared, condition("UnhealthyNvidiaDevicePlugin", corev1.ConditionFalse), n1, "it will be taken for ill"},
		{"AKS looks at the plugin, on the way back", Rollback, migrated, condition("UnhealthyNvidiaDevicePlugin", corev1.ConditionFalse), nil, ""},
		{"AKS finds DCGM well", Migrate, prepared, condition("UnhealthyNvidiaDCGMServices", corev1.ConditionFalse), nil, ""},
		{"its monitor is silent", Migrate, prepared, condition("AcceleratedHardwareReady", corev1.ConditionUnknown), n1, "is Unknown (R): how the GPUs are cannot be known"},
		{"not about GPUs", Migrate, prepared, condition("KernelDeadlock", corev1.ConditionTrue), nil, ""},
	})
	for operation, want := range map[string]string{
		Migrate:  "see that its monitor runs there, before the move",
		Rollback: "see that its monitor runs there, before the rollback",
		Verify:   "see that its monitor runs there",
	} {
		s := migrated()
		if operation == Migrate {
			s = prepared()
		}
		condition("AcceleratedHardwareReady", corev1.ConditionUnknown)(s)
		if got := remedies(Run(s.of(operation)), "DRM090"); !strings.HasSuffix(got, want) {
			t.Errorf("%s: remedy %q, want its end %q", operation, got, want)
		}
	}
}

func TestDRM091(t *testing.T) {
	t.Parallel()
	const key = "machineconfiguration.openshift.io/"
	done := all(annotate("n1", key+"state", "Done"), annotate("n1", key+"currentConfig", "rendered-a"), annotate("n1", key+"desiredConfig", "rendered-a"))
	try(t, "DRM091", []given{
		{"at work", Migrate, prepared, all(done, annotate("n1", key+"state", "Working")), []string{"blocker node/n1"}, "state=Working"},
		{"about to be", Migrate, prepared, all(done, annotate("n1", key+"desiredConfig", "rendered-b")), []string{"blocker node/n1"}, "desiredConfig=rendered-b"},
		{"degraded, on the way back", Rollback, migrated, all(done, annotate("n1", key+"state", "Degraded")), []string{"warning node/n1"}, ""},
		{"done", Migrate, prepared, done, nil, ""},
		{"not OpenShift", Migrate, prepared, nil, nil, ""},
	})
}

// B-023: the labels come and go with Node Feature Discovery; B-085 and B-059: it does not
// come to a node for its taint; B-057: nor does what follows it.
func TestDRM092(t *testing.T) {
	t.Parallel()
	const image = "registry.k8s.io/nfd/node-feature-discovery:v0.18.3"
	nfd := func(s *state) {
		ds := s.addDaemonSet("nfd", nil, "")
		ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "worker", Image: image}}
		// As the operator's chart has it.
		ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpEqual, Value: "present", Effect: corev1.TaintEffectNoSchedule}}
		for _, n := range []string{"cpu", "m1", "n1", "n2"} {
			s.runDaemon("nfd", n)
		}
	}
	tainted := func(value string) func(*state) {
		return func(s *state) {
			s.node("n1").Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: value, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	try(t, "DRM092", []given{
		{"it looks after all nodes", Migrate, prepared, all(nfd, tainted("present")), nil, ""},
		{"a taint of another value", Migrate, prepared, all(nfd, tainted("true")), []string{"warning node/n1"}, "it does not tolerate the node's taint nvidia.com/gpu=true:NoSchedule"},
		{"its worker is down on a node of the pool", Migrate, prepared, all(nfd, func(s *state) { s.pod("nfd-n1").Ready = false }), []string{"warning pod/kube-system/nfd-n1"}, "is not ready"},
		{"its worker is down elsewhere", Migrate, prepared, all(nfd, func(s *state) { s.pod("nfd-m1").Ready = false }), nil, ""},
		{"its master is down", Migrate, prepared, all(nfd, controller(image), func(s *state) { s.pod("controller").Ready = false }), []string{"warning pod/team/controller"}, "come back with their defaults"},
		{"it is not there", Migrate, prepared, tainted("true"), nil, ""},
	})
}

// A group is known by what its provider writes on nodes; what a person may have written is
// not enough.
func TestProviderOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		labels      map[string]string
		annotations map[string]string
		want        string
	}{
		{map[string]string{"karpenter.sh/nodepool": "a"}, nil, ""},
		{map[string]string{"karpenter.sh/nodepool": "a", "karpenter.sh/capacity-type": "spot"}, nil, "Karpenter/a"},
		// A managed node group that eksctl made has both.
		{map[string]string{"eks.amazonaws.com/nodegroup": "a", "alpha.eksctl.io/nodegroup-name": "a"}, nil, "EKS/a"},
		{nil, map[string]string{"machine.openshift.io/machine": "openshift-machine-api/c1-gpu-eu-1a-x7k2q"}, "OpenShift's Machine API/c1-gpu-eu-1a"},
		{map[string]string{"node-pool": "a"}, nil, ""},
	} {
		got := ""
		if p, ok := providerOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: tt.labels, Annotations: tt.annotations}}); ok {
			got = p.name + "/" + p.group
		}
		if got != tt.want {
			t.Errorf("labels %v, annotations %v: %q, want %q", tt.labels, tt.annotations, got, tt.want)
		}
	}
}
