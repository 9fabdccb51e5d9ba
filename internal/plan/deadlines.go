package plan

import (
	"cmp"
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

// Deadlines are the waits of one node whose limits a person may set, because how long
// they take depends on the cluster: image pulls, grace periods, admission. What is 0
// has its default.
type Deadlines struct {
	// ClaimsGone bounds the wait for the claims of evicted pods to be deallocated.
	// Default 5m.
	ClaimsGone metav1.Duration `json:"claimsGone,omitzero"`
	// PluginGone bounds the wait for the pods of the device plugin, or on the way back
	// those of the driver, to leave a node, and for allocatable to be 0. Default 2m.
	PluginGone metav1.Duration `json:"pluginGone,omitzero"`
	// DriverReady bounds the wait for the driver's pods on a node, image pull
	// included. Default 5m.
	DriverReady metav1.Duration `json:"driverReady,omitzero"`
	// SlicesComplete bounds the wait for the driver's ResourceSlices, counted from
	// ready pods. Default 2m.
	SlicesComplete metav1.Duration `json:"slicesComplete,omitzero"`
	// Canary bounds the canary pod, from its creation to its end. Default 3m.
	Canary metav1.Duration `json:"canary,omitzero"`
	// SlicesGone bounds the wait for the kubelet to wipe the driver's ResourceSlices in
	// a rollback. Default 2m.
	SlicesGone metav1.Duration `json:"slicesGone,omitzero"`
	// PluginReady bounds the wait for the device plugin's pods, and for its devices to
	// be allocatable, in a rollback. Default 5m.
	PluginReady metav1.Duration `json:"pluginReady,omitzero"`
}

// orDefaults fills in the defaults.
func (d Deadlines) orDefaults() Deadlines {
	or := func(set metav1.Duration, standard time.Duration) metav1.Duration {
		return metav1.Duration{Duration: cmp.Or(set.Duration, standard)}
	}
	return Deadlines{
		ClaimsGone: or(d.ClaimsGone, claimsGone), PluginGone: or(d.PluginGone, pluginGone),
		DriverReady: or(d.DriverReady, driverReady), SlicesComplete: or(d.SlicesComplete, slicesComplete),
		Canary: or(d.Canary, CanaryDeadline), SlicesGone: or(d.SlicesGone, slicesGone),
		PluginReady: or(d.PluginReady, pluginAdvertises),
	}
}

func within(what string, d time.Duration) Wait {
	return Wait{For: what, Deadline: metav1.Duration{Duration: d}}
}
