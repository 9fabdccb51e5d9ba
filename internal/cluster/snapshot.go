// Package cluster holds the cluster as dramigrate sees it: an immutable Snapshot
// and the pure rules over it that Kubernetes itself applies (which mechanism
// backs a pod, which slices are complete, which devices a claim holds).
//
// Only the loader talks to a server. Everything else works on values, so that a
// rule that decides something in a plan is the same rule that the engine waits for.
package cluster

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is the part of a cluster's state that the tool decides by, read once.
// It is immutable after the loader returned it, and every list is sorted by
// namespace and name, so that equal states give equal plans.
type Snapshot struct {
	Identity   Identity
	Nodes      []corev1.Node
	Pods       []Pod
	DaemonSets []appsv1.DaemonSet
	Slices     []resourcev1.ResourceSlice
	Classes    []resourcev1.DeviceClass
	Claims     []resourcev1.ResourceClaim
	Budgets    []policyv1.PodDisruptionBudget
	// Journals and Locks are the tool's own records, by pool; that of the shared
	// objects has no pool.
	Journals []Journal
	Locks    []LockInfo
	// Advice says that the parts of AdviceParts were asked for. If they were not, the
	// fields below are empty and IsUnknown says so; Unknown does not list them, as
	// nobody is told that something is missing which he did not ask for.
	Advice bool
	// Workloads are those whose pods would ask for an extended resource or a claim.
	Workloads       []Workload
	Quotas          []corev1.ResourceQuota
	LimitRanges     []corev1.LimitRange
	Namespaces      []Namespace
	PriorityClasses []PriorityClass
	// Queries are what monitoring, autoscalers and dashboards ask about the devices
	// that nodes or pods have, sorted by object and place.
	Queries []Query
	// Operators are the objects that tell a vendor's operator what to run, sorted by
	// kind.
	Operators []OperatorObject
	// API is what the server can do.
	API API
	// Access is what the caller may do; nil if nobody has asked. See ReviewAccess.
	Access *Access
	// Unknown lists what could not be read. A rule that needs such a part must
	// answer "unknown", never "fine".
	Unknown []Unknown
	// Taken is when the cluster had been read, where the Snapshot was made from files that
	// tell; zero for one that was read just now, and for files that do not.
	Taken time.Time
	// Source is set if the Snapshot was made from files that may hold less than all
	// of the cluster.
	Source *Source
}

// Source describes files that a Snapshot was made from.
type Source struct {
	// Files are how many objects of each kind were read, by kind.
	Files map[string]int `json:"files"`
	// Ignored are how many objects of kinds that the tool does not use were passed
	// over, by kind.
	Ignored map[string]int `json:"ignored,omitempty"`
	// Note says why the files cannot be taken for the whole cluster.
	Note string `json:"note"`
}

// Identity tells one cluster from another and says what it runs.
type Identity struct {
	// UID is the UID of the kube-system namespace: it stays for a cluster's life.
	UID types.UID `json:"uid,omitempty"`
	// ServerVersion is the API server's gitVersion, such as "v1.37.2".
	ServerVersion string `json:"serverVersion,omitempty"`
	// EmulationVersion is "major.minor" if the server emulates an older version
	// (--emulated-version), else empty.
	EmulationVersion string `json:"emulationVersion,omitempty"`
}

// Unknown is a part of the cluster that could not be read, and why.
type Unknown struct {
	// Part names what is missing, in the plural of the resource ("resourceslices").
	Part string `json:"part"`
	// Reason is the server's answer, or why it was not asked.
	Reason string `json:"reason"`
}

// NodeView is all that a Snapshot knows about one node. The planner takes it from
// a Snapshot, the engine from its watches; the rules do not see the difference.
type NodeView struct {
	Node   *corev1.Node
	Pods   []Pod
	Slices []resourcev1.ResourceSlice
	// Claims are the claims that hold, or may hold, a device of this node: those
	// whose allocation names one of its pools. See ClaimsOnNode.
	Claims []resourcev1.ResourceClaim
}
