package simnode

import (
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/internal/dradriver"
	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

const (
	// labelType with valueSimulated marks every simulated node.
	labelType      = "type"
	valueSimulated = "simulated"
	// address is where "the kubelet" is: on loopback, at a port where nobody
	// listens, so that whoever asks it for logs is refused at once.
	address     = "127.0.0.1"
	kubeletPort = 1
	// leaseSeconds is the kubelet's default nodeLeaseDurationSeconds.
	leaseSeconds int32 = 40
	// leaseRenewal is a quarter of it, as in the kubelet.
	leaseRenewal = 10 * time.Second
)

// nodeObject is the Node as a kubelet registers it.
func nodeObject(n Node, version string, now time.Time) *corev1.Node {
	labels := maps.Clone(n.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		labelType:              valueSimulated,
		corev1.LabelHostname:   n.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	})
	size := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: slices.Clone(n.Taints)},
		Status: corev1.NodeStatus{
			Capacity:    size,
			Allocatable: size.DeepCopy(),
			Conditions:  nodeConditions(now),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: n.Name},
				{Type: corev1.NodeInternalIP, Address: address},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: kubeletPort}},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          version,
				ContainerRuntimeVersion: "simulated://0",
				OperatingSystem:         "linux",
				Architecture:            "amd64",
			},
		},
	}
}

func nodeConditions(now time.Time) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: "Simulated",
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
		}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse),
		condition(corev1.NodeReady, corev1.ConditionTrue),
	}
}

// leaseObject is the heartbeat of a node.
func leaseObject(node *corev1.Node, now time.Time) *coordinationv1.Lease {
	seconds, renewed := leaseSeconds, metav1.NewMicroTime(now)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       corev1.NamespaceNodeLease,
			Name:            node.Name,
			OwnerReferences: []metav1.OwnerReference{ownedBy(node)},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &node.Name,
			LeaseDurationSeconds: &seconds,
			RenewTime:            &renewed,
		},
	}
}

// sliceObject is what the driver publishes for the node, in one slice.
func sliceObject(node *corev1.Node, gpus gpu.Set) (*resourceapi.ResourceSlice, error) {
	devices, err := dradriver.Devices(gpus)
	if err != nil {
		return nil, err
	}
	owner := ownedBy(node)
	controller := true
	owner.Controller = &controller
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    "0-" + dradriver.DriverName + "-" + node.Name + "-",
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   dradriver.DriverName,
			NodeName: &node.Name,
			Pool:     resourceapi.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
			Devices:  devices,
		},
	}, nil
}

func ownedBy(node *corev1.Node) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
}

// runningStatus is the status of a pod whose containers all run and are ready.
func runningStatus(p *corev1.Pod, now time.Time) corev1.PodStatus {
	status := *p.Status.DeepCopy()
	at := metav1.NewTime(now)
	status.Phase = corev1.PodRunning
	status.StartTime = &at
	status.HostIP, status.HostIPs = address, []corev1.HostIP{{IP: address}}
	status.PodIP, status.PodIPs = address, []corev1.PodIP{{IP: address}}
	status.InitContainerStatuses = nil
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			status.InitContainerStatuses = append(status.InitContainerStatuses, runningContainer(c, at))
			continue
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, endedContainer(c, at))
	}
	status.ContainerStatuses = nil
	for _, c := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, runningContainer(c, at))
	}
	setConditions(&status, at, "", corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady)
	return status
}

// succeededStatus is the status of a pod that has run and ended well.
func succeededStatus(p *corev1.Pod, now time.Time) corev1.PodStatus {
	status := *p.Status.DeepCopy()
	at := metav1.NewTime(now)
	status.Phase = corev1.PodSucceeded
	status.ContainerStatuses = nil
	for _, c := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, endedContainer(c, at))
	}
	setConditions(&status, at, "PodCompleted", corev1.PodReady, corev1.ContainersReady)
	return status
}

// rejectedStatus is what a kubelet leaves of a pod for which the plugin has no
// device: the pod has failed and never ran.
func rejectedStatus(p *corev1.Pod, now time.Time) corev1.PodStatus {
	status := *p.Status.DeepCopy()
	at := metav1.NewTime(now)
	status.Phase = corev1.PodFailed
	status.StartTime = &at
	status.Reason = "UnexpectedAdmissionError"
	status.Message = "Pod was rejected: the simulated device plugin has no free device"
	return status
}

func runningContainer(c corev1.Container, at metav1.Time) corev1.ContainerStatus {
	started := true
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "simulated://" + c.Name,
		Ready: true, Started: &started,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
	}
}

func endedContainer(c corev1.Container, at metav1.Time) corev1.ContainerStatus {
	started := false
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "simulated://" + c.Name,
		Started: &started,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: at, FinishedAt: at,
		}},
	}
}

// setConditions sets the conditions of the given types and keeps all others,
// which are not a kubelet's. With a reason they are false, without one true.
func setConditions(status *corev1.PodStatus, at metav1.Time, reason string, types ...corev1.PodConditionType) {
	value := corev1.ConditionTrue
	if reason != "" {
		value = corev1.ConditionFalse
	}
	for _, t := range types {
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t })
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: t, Status: value, Reason: reason, LastTransitionTime: at,
		})
	}
}
