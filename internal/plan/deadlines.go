package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Deadlines of the waits. They are generous multiples of what Kubernetes takes when
// nothing is wrong, because a run that gives up too early leaves a node closed.
const (
	// DefaultDrainTimeout bounds the eviction of one node's pods.
	DefaultDrainTimeout = 15 * time.Minute
	// pluginGone covers the plugin pod's termination and the node status update
	// that sets allocatable to 0 (nodeStatusUpdateFrequency, 10 s).
	pluginGone = 2 * time.Minute
	// driverReady covers an image pull.
	driverReady = 5 * time.Minute
	// slicesComplete is counted from a ready driver pod.
	slicesComplete = 2 * time.Minute
	// CanaryDeadline bounds a canary pod, from its creation to its end.
	CanaryDeadline = 3 * time.Minute
	// helperRun bounds a short pod on a node whose image was pulled already.
	helperRun = 2 * time.Minute
	// claimsGone covers kube-controller-manager's deallocation after the last pod
	// that reserved a claim has ended.
	claimsGone = 5 * time.Minute
	// slicesGone covers the 30 s after which a kubelet wipes the slices of a driver
	// that deregistered (defaultWipingDelay, pkg/kubelet/cm/dra/manager.go,
	// v1.37.2), and its first retries.
	slicesGone       = 2 * time.Minute
	pluginAdvertises = 5 * time.Minute
	sharedObject     = 2 * time.Minute
	// pluginRestart is one plugin pod's share of a rolling update: stop, start,
	// register, node status.
	pluginRestart = 2 * time.Minute
)

// DefaultKubeletGrace is the kubelet's 5 minutes (Settings.KubeletGrace) and one
// node status update.
const DefaultKubeletGrace = 5*time.Minute + 10*time.Second

// DefaultSoak is how long an opened node is watched before its batch counts.
const DefaultSoak = 30 * time.Second

func within(what string, d time.Duration) Wait {
	return Wait{For: what, Deadline: metav1.Duration{Duration: d}}
}
