package cluster

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Pod is what the tool needs of a pod. It is a projection, not the object: a fleet
// has 150,000 pods, and whole objects would cost gigabytes.
type Pod struct {
	Namespace string
	Name      string
	UID       types.UID
	Node      string // spec.nodeName; empty while unscheduled
	Phase     corev1.PodPhase
	Labels    map[string]string
	// Owner is the controlling owner; zero for a bare pod.
	Owner Owner
	// Static is true for the mirror of a static pod: the API cannot remove it.
	Static      bool
	Terminating bool
	Ready       bool
	// LocalStorage is true if the pod has an emptyDir volume, whose data an
	// eviction loses.
	LocalStorage  bool
	SchedulerName string
	// Requests are the extended resources that the pod's containers ask for, init
	// containers included, in container order then by resource name.
	Requests []Request
	// Claims are the names of the ResourceClaims that the pod uses explicitly
	// (spec.resourceClaims, generated names resolved from the status). A claim that
	// is not generated yet appears as "" so that its existence is not lost.
	Claims []string
	// Bridge is pod.status.extendedResourceClaimStatus (KEP-5004); nil without one.
	Bridge *Bridge
	// HostPaths are the paths of hostPath volumes, by which plugin and driver pods
	// are recognised.
	HostPaths []string
	// Images are the images of the pod's containers, init containers first.
	Images []string
	// Waiting is the first waiting or terminated reason of a container
	// ("CrashLoopBackOff"), for messages; empty if none.
	Waiting string
	// WaitingMessage is what the kubelet says about Waiting, at most 2 KiB. A container
	// that has ended may have written its message itself; that is not kept.
	WaitingMessage string
	// Created is metadata.creationTimestamp, in UTC.
	Created time.Time
	// Priority is spec.priority; nil if admission has not set it, as in a template.
	Priority *int32
	// PriorityClass is spec.priorityClassName.
	PriorityClass string
	// PreemptionPolicy is spec.preemptionPolicy; empty for PreemptLowerPriority, the
	// default.
	PreemptionPolicy corev1.PreemptionPolicy
	// GracePeriodSeconds is spec.terminationGracePeriodSeconds; nil for 30, the default.
	GracePeriodSeconds *int64
	// RestartPolicy is spec.restartPolicy; empty for Always, the default.
	RestartPolicy corev1.RestartPolicy
	// RuntimeClass is spec.runtimeClassName.
	RuntimeClass string
	Finalizers   []string
	// Guaranteed is true if the pod's QoS class is Guaranteed: the kubelet's CPU,
	// memory and topology managers align no other pod.
	Guaranteed bool
	// Privileged is true if a container is, an init container included. It sees every
	// device of its node, whatever it asks for.
	Privileged bool
	// VisibleDevices is the first value of NVIDIA_VISIBLE_DEVICES in the environment of
	// a container, at most 1 KiB. The NVIDIA container runtime may act on it although
	// the pod asks for no device.
	VisibleDevices string
	// SchedulingGates are the names of spec.schedulingGates.
	SchedulingGates []string
	// Group is the pod group that the pod is scheduled with: spec.schedulingGroup, or
	// the label of the coscheduling plugin; empty if the pod is scheduled alone.
	Group string
	// Queue is the Kueue LocalQueue that admits the pod (kueue.x-k8s.io/queue-name).
	Queue string
	// NodeLabels is what the nodeSelector and the terms of the required node affinity
	// ask of node labels, each once and sorted by key. Terms are alternatives, so that
	// not each of these has to hold.
	NodeLabels []corev1.NodeSelectorRequirement
	// CPU and Memory are what the scheduler counts of the pod's requests, in thousandths
	// of a CPU and in bytes.
	CPU, Memory int64
	// ClaimTemplates are the ResourceClaimTemplates of spec.resourceClaims, in order.
	ClaimTemplates []string
	// Scheduled is the condition PodScheduled as long as it is not true; nil for a pod
	// that is bound, or that no scheduler has looked at.
	Scheduled *Condition
	// Placement is where the pod may go, whole, as long as there is Scheduled, and of a pod
	// with Requests or claims: of the many others that have a node nobody asks.
	Placement *Placement
	// Reason and Message are those of the pod's status ("UnexpectedAdmissionError"),
	// not of a condition; the message has at most 2 KiB.
	Reason, Message string
	// HelperNode is the node that a helper pod of the tool is for, bound or not.
	HelperNode string
}

// Condition is one condition of a pod.
type Condition struct {
	Status corev1.ConditionStatus
	// Reason is a word for programs ("Unschedulable", "SchedulingGated").
	Reason string
	// Message is for people, at most 2 KiB.
	Message string
}

// Placement is what a pod says about the nodes that may have it.
type Placement struct {
	NodeSelector map[string]string
	// Required is the required node affinity; nil for none.
	Required    *corev1.NodeSelector
	Tolerations []corev1.Toleration
}

// Admits says whether the node's labels are those that the pod requires. Taints are
// another matter.
func (p *Placement) Admits(node *corev1.Node) bool {
	var affinity *corev1.Affinity
	if p.Required != nil {
		affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: p.Required}}
	}
	// Like the scheduler: a term that cannot be parsed matches nothing.
	fits, _ := nodeaffinity.NewRequiredNodeAffinity(p.NodeSelector, affinity).Match(node)
	return fits
}

// Owner names a controlling owner reference.
type Owner struct {
	Kind string    `json:"kind,omitempty"`
	Name string    `json:"name,omitempty"`
	UID  types.UID `json:"uid,omitempty"`
}

// Request is one container's request for one extended resource.
type Request struct {
	Container string
	Resource  corev1.ResourceName
	Count     int64
	// Init is true for an init container that ends before the others start. A
	// sidecar runs beside them and is not one.
	Init bool
}

// Bridge is the scheduler's record that DRA serves a pod's extended resources.
type Bridge struct {
	Claim    string // in the pod's namespace
	Mappings []Mapping
}

// Mapping ties one container's extended resource to one request of the claim.
type Mapping struct {
	Container string
	Resource  corev1.ResourceName
	Request   string
}

// Ref is the pod as messages name it: "namespace/name".
func (p *Pod) Ref() string { return p.Namespace + "/" + p.Name }

// Finished says that the pod has ended and holds no device any more.
func (p *Pod) Finished() bool {
	return p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed
}

// IsHelper says that the pod is one of the tool's own short ones. A run that was
// killed may have left it; the next run removes it, and it is nobody's workload.
func (p *Pod) IsHelper() bool { return p.Labels[HelperLabel] != "" }

// WorkloadOwner is what a person edits to change the pod: its controlling owner, or the
// Deployment that owns its ReplicaSet. The Deployment's UID is not known from the pod.
// The deployment controller names a ReplicaSet <deployment>-<hash> and labels its pods
// with the hash (pkg/controller/deployment/sync.go, v1.37.2); a ReplicaSet of anything
// else has no such label on its pods.
func (p *Pod) WorkloadOwner() Owner {
	hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if p.Owner.Kind != "ReplicaSet" || hash == "" {
		return p.Owner
	}
	name, ok := strings.CutSuffix(p.Owner.Name, "-"+hash)
	if !ok || name == "" {
		return p.Owner
	}
	return Owner{Kind: KindDeployment, Name: name}
}
