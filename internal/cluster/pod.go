package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// HelperNode is the node that a helper pod of the tool is for, bound or not.
	HelperNode string
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
