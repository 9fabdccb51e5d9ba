package checks

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

const (
	gpu    = "nvidia.com/gpu"
	driver = "gpu.nvidia.com"
)

// state is a cluster that a case changes before it is looked at: pool "gpu" of nodes
// n1 and n2, pool "other" of node m1, and a CPU node.
type state struct {
	*cluster.Snapshot
	in Input
}

// prepared is the cluster after prepare: the plugin runs everywhere and heeds the
// label, the driver runs nowhere, one workload's pod runs on n1.
func prepared() *state {
	s := &state{Snapshot: &cluster.Snapshot{
		Identity: cluster.Identity{UID: "cluster", ServerVersion: "v1.37.2"},
		Advice:   true,
		API: cluster.API{ResourceVersions: []string{"v1"}, Features: map[string]cluster.Feature{
			cluster.FeatureExtendedResource: {Enabled: true, Evidence: "metric kubernetes_feature_enabled"},
			cluster.FeatureDRA:              {Enabled: true, Evidence: "metric kubernetes_feature_enabled"},
		}},
		Nodes: []corev1.Node{cpuNode("cpu"), gpuNode("m1", "other", 2), gpuNode("n1", "gpu", 2), gpuNode("n2", "gpu", 2)},
	}}
	s.addDaemonSet("plugin", map[string]string{"name": "nvidia-device-plugin-ds"}, "/var/lib/kubelet/device-plugins",
		corev1.NodeSelectorRequirement{Key: "dramigrate.dev/allocation", Operator: corev1.NodeSelectorOpDoesNotExist})
	s.addDaemonSet("driver", map[string]string{"dra-driver-nvidia-gpu-component": "kubelet-plugin"}, "/var/lib/kubelet/plugins_registry",
		corev1.NodeSelectorRequirement{Key: "dramigrate.dev/allocation", Operator: corev1.NodeSelectorOpIn, Values: []string{"dra"}})
	for _, n := range []string{"m1", "n1", "n2"} {
		s.runDaemon("plugin", n)
	}
	s.addPod("train", "n1", 1)
	return s
}

// untouched is the cluster before prepare: the plugin heeds no label and no driver
// is there.
func untouched() *state {
	s := prepared()
	s.DaemonSets = s.DaemonSets[:1]
	s.daemonSet("plugin").Spec.Template.Spec.Affinity = nil
	return s
}

// migrated is the cluster after pool gpu has moved: n1 and n2 are on the driver, the
// workload's pod holds gpu-0 of n1 by a generated claim.
func migrated() *state {
	s := prepared()
	s.Classes = []resourcev1.DeviceClass{class("gpu.nvidia.com", `device.driver == "gpu.nvidia.com"`)}
	for _, n := range []string{"n1", "n2"} {
		s.stop("plugin", n)
		s.runDaemon("driver", n)
		s.Slices = append(s.Slices, nodeSlice(n, driver, "gpu-0", "gpu-1"))
		node := s.node(n)
		node.Labels["dramigrate.dev/allocation"] = "dra"
		node.Status.Allocatable[gpu] = resource.MustParse("0")
		s.mark(n, "gpu", true)
	}
	s.bridge("train", gpu, "n1", "gpu-0")
	return s
}

// rolledBack is the cluster after pool gpu has come back, prepare still being there.
func rolledBack() *state {
	s := prepared()
	s.Classes = migrated().Classes
	return s
}

// of sets what is intended.
func (s *state) of(operation string) Input {
	in := s.in
	in.Snapshot = s.Snapshot
	in.Inventory = gate.Detect(s.Snapshot)
	in.Gate = gate.OwnKey()
	if n, ok := s.Node("n1"); ok {
		in.Gate = in.Inventory.For(gpu, n)[0].Gate
	}
	in.Resource = cmp.Or(in.Resource, gpu)
	in.Resources = in.Inventory.ResourcesWith(in.Resource)
	in.Driver = cmp.Or(in.Driver, driver)
	in.Operation = operation
	if operation == Migrate || operation == Rollback {
		in.Pool = cluster.NodePool{Name: "gpu", Selector: "karpenter.sh/nodepool=gpu", Nodes: []string{"n1", "n2"}}
	}
	return in
}

func cpuNode(name string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status: corev1.NodeStatus{
			NodeInfo:    corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", ContainerRuntimeVersion: "containerd://2.1.4"},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Capacity:    corev1.ResourceList{},
			Allocatable: corev1.ResourceList{},
		},
	}
}

func gpuNode(name, pool string, count int64) corev1.Node {
	n := cpuNode(name)
	n.Labels["karpenter.sh/nodepool"] = pool
	n.Labels["nvidia.com/gpu.count"] = "2"
	n.Labels["feature.node.kubernetes.io/pci-10de.present"] = "true"
	n.Status.Capacity[gpu] = *resource.NewQuantity(count, resource.DecimalSI)
	n.Status.Allocatable[gpu] = *resource.NewQuantity(count, resource.DecimalSI)
	return n
}

func (s *state) node(name string) *corev1.Node {
	n, ok := s.Node(name)
	if !ok {
		panic("no node " + name)
	}
	return n
}

func (s *state) daemonSet(name string) *appsv1.DaemonSet {
	for i := range s.DaemonSets {
		if s.DaemonSets[i].Name == name {
			return &s.DaemonSets[i]
		}
	}
	panic("no DaemonSet " + name)
}

func (s *state) pod(name string) *cluster.Pod {
	for i := range s.Pods {
		if s.Pods[i].Name == name {
			return &s.Pods[i]
		}
	}
	panic("no pod " + name)
}

func (s *state) addDaemonSet(name string, labels map[string]string, mount string, exprs ...corev1.NodeSelectorRequirement) *appsv1.DaemonSet {
	ds := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID("ds-" + name)}}
	t := &ds.Spec.Template
	t.Labels = labels
	if mount != "" {
		t.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: mount}}}}
	}
	if len(exprs) > 0 {
		t.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: exprs}},
		}}}
	}
	s.DaemonSets = append(s.DaemonSets, ds)
	return &s.DaemonSets[len(s.DaemonSets)-1]
}

func (s *state) runDaemon(daemonSet, node string) *cluster.Pod {
	s.Pods = append(s.Pods, cluster.Pod{
		Namespace: "kube-system", Name: daemonSet + "-" + node, UID: types.UID(daemonSet + "-" + node), Node: node, Phase: corev1.PodRunning, Ready: true,
		Owner: cluster.Owner{Kind: "DaemonSet", Name: daemonSet, UID: types.UID("ds-" + daemonSet)},
	})
	return &s.Pods[len(s.Pods)-1]
}

func (s *state) stop(daemonSet, node string) {
	s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return p.Name == daemonSet+"-"+node })
}

// addPod adds a workload's pod that asks for count GPUs, or for none.
func (s *state) addPod(name, node string, count int64) *cluster.Pod {
	p := cluster.Pod{
		Namespace: "team", Name: name, UID: types.UID("pod-" + name), Node: node, Phase: corev1.PodRunning, Ready: true,
		Labels: map[string]string{"app": name}, Owner: cluster.Owner{Kind: "ReplicaSet", Name: name},
	}
	if count > 0 {
		p.Requests = []cluster.Request{{Container: "main", Resource: gpu, Count: count}}
	}
	s.Pods = append(s.Pods, p)
	return &s.Pods[len(s.Pods)-1]
}

// claim adds a claim that holds a device for a pod of namespace team.
func (s *state) claim(name, driverName, node, device, user string) *resourcev1.ResourceClaim {
	c := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: driverName, Pool: node, Device: device}},
	}}
	if user != "" {
		p := s.pod(user)
		c.Namespace = p.Namespace
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}}
	}
	s.Claims = append(s.Claims, c)
	return &s.Claims[len(s.Claims)-1]
}

// bridge backs a pod's request by a generated claim.
func (s *state) bridge(pod, resourceName, node, device string) {
	p := s.pod(pod)
	p.Bridge = &cluster.Bridge{Claim: pod + "-extended-resources-1", Mappings: []cluster.Mapping{
		{Container: "main", Resource: corev1.ResourceName(resourceName), Request: "container-0-request-0"},
	}}
	s.claim(p.Bridge.Claim, driver, node, device, pod)
}

func nodeSlice(node, driverName string, devices ...string) resourcev1.ResourceSlice {
	s := resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-" + driverName}, Spec: resourcev1.ResourceSliceSpec{
		Driver: driverName, NodeName: ptr.To(node), Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}}
	for _, d := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: d, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": {StringValue: ptr.To("gpu")}, "uuid": {StringValue: ptr.To("GPU-" + node + "-" + d)},
		}})
	}
	return s
}

func class(name string, expressions ...string) resourcev1.DeviceClass {
	c := resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.ExtendedResourceName = ptr.To(gpu)
	for _, e := range expressions {
		c.Spec.Selectors = append(c.Spec.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
	}
	return c
}

// mark writes the annotation of a migration onto a node; opened says that it is over
// there.
func (s *state) mark(node, pool string, opened bool) {
	st := cluster.NodeState{Pool: pool, Selector: "karpenter.sh/nodepool=" + pool, Operation: Migrate, Run: "r1", Epoch: 1, Resources: []string{gpu}}
	if opened {
		st.OpenedAt = ptr.To(metav1.Unix(1, 0))
	}
	raw, err := st.Encode()
	if err != nil {
		panic(err)
	}
	s.node(node).Annotations["dramigrate.dev/state"] = raw
}

func (s *state) budget(name, app string, allowed int32) {
	s.Budgets = append(s.Budgets, policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1},
	})
}
