// Package pending says why a pod that asks for devices waits or fails: one cause, and
// what to do about it. It decides by what the pod, its events and a Snapshot say, as
// seen on real clusters (docs/truth.md), and imports no client.
package pending

import (
	"time"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// Kind of the document that Diagnose makes; its API version is cluster.APIVersion.
const Kind = "PodDiagnosis"

// Cause is why a pod waits or fails.
type Cause string

// The causes.
const (
	// None: the pod runs, has ended well, or has only just been made.
	None Cause = "none"
	// Unknown: nothing that is known explains it.
	Unknown Cause = "unknown"
	// NotDevices: it waits or fails for another reason than devices.
	NotDevices Cause = "not-devices"

	// Gated: somebody holds it back by a scheduling gate.
	Gated Cause = "gated"
	// Queued: Kueue has not admitted it.
	Queued Cause = "queued"
	// Unscheduled: no scheduler has looked at it.
	Unscheduled Cause = "unscheduled"
	// OtherScheduler: another scheduler than the default one has it.
	OtherScheduler Cause = "other-scheduler"

	// TooMany: it asks for more devices than one claim can hold.
	TooMany Cause = "too-many-devices"
	// ClaimAndName: it has a claim of its own and asks for a mapped name as well.
	ClaimAndName Cause = "claim-and-name"
	// Quota: a quota refuses the claim that is made for it.
	Quota Cause = "quota"
	// ClaimRefused: something else refuses that claim.
	ClaimRefused Cause = "claim-refused"
	// ClaimMissing: a claim that it uses does not exist.
	ClaimMissing Cause = "claim-missing"

	// NoClass: no DeviceClass carries the name, and no plugin serves it there.
	NoClass Cause = "no-class"
	// MappingLost: a class carries the name, and the scheduler has lost it.
	MappingLost Cause = "mapping-lost"
	// ClassFails: an expression of the class fails on a published device.
	ClassFails Cause = "class-fails"
	// ClassSelectsNothing: the class selects none of the published devices.
	ClassSelectsNothing Cause = "class-selects-nothing"

	// NodesClosed: the nodes with devices are closed to pods.
	NodesClosed Cause = "nodes-closed"
	// NoSlices: the driver publishes nothing on the nodes that it could go to.
	NoSlices Cause = "slices-missing"
	// SlicesIncomplete: a pool's slices are not all there.
	SlicesIncomplete Cause = "slices-incomplete"
	// PluginFull: the plugin still counts on a node, is full there, and keeps the pod from
	// the driver's devices.
	PluginFull Cause = "plugin-full"
	// Tainted: devices are free and tainted.
	Tainted Cause = "devices-tainted"
	// NodesTooSmall: no node has as many devices.
	NodesTooSmall Cause = "nodes-too-small"
	// Taken: others hold the devices.
	Taken Cause = "devices-taken"

	// OldKubelet: the node's kubelet is too old for devices that DRA hands out by name.
	OldKubelet Cause = "old-kubelet"
	// KubeletRemembers: the kubelet still remembers devices of a plugin that has left.
	KubeletRemembers Cause = "kubelet-remembers-plugin"
	// DriverGone: the node's driver is not registered with its kubelet.
	DriverGone Cause = "driver-not-registered"
	// PrepareFails: the driver, or the kubelet, cannot prepare the devices.
	PrepareFails Cause = "prepare-fails"
	// CannotEnd: it is being deleted, and the driver that has to release its devices is
	// gone.
	CannotEnd Cause = "driver-gone-terminating"
	// Refused: the kubelet did not take it for lack of devices.
	Refused Cause = "refused-by-kubelet"
)

// Diagnosis is why one pod waits or fails.
type Diagnosis struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Pod is "namespace/name".
	Pod string `json:"pod"`
	// Node is where it is bound; empty if it is not.
	Node  string `json:"node,omitempty"`
	Cause Cause  `json:"cause"`
	// Why is the cause in a sentence, with the names of this cluster.
	Why string `json:"why"`
	// Evidence is what shows it, for a person to verify.
	Evidence []string `json:"evidence,omitempty"`
	// Remedy is the next thing to do.
	Remedy string `json:"remedy,omitempty"`
	// Certain is true if the component that keeps the pod says so itself, or nothing else
	// is left; otherwise the cause is what the cluster's state makes likely.
	Certain bool `json:"certain"`
	// Unseen is what could not be looked at and might tell more.
	Unseen []cluster.Unknown `json:"unseen,omitempty"`
}

// Options say what a diagnosis is about.
type Options struct {
	Resource, Driver string
	// Now tells how long the pod waits.
	Now time.Time
	// Unseen is what was not looked at beside what the Snapshot tells, such as events.
	Unseen []cluster.Unknown
}

// patience is how long a pod may wait before somebody has to ask why.
const patience = 30 * time.Second

// Diagnose finds the cause. events are the pod's own, the newest first, as
// cluster.PodEvents returns them.
func Diagnose(s *cluster.Snapshot, pod *cluster.Pod, events []cluster.PodEvent, o Options) Diagnosis {
	return diagnose(newStock(s), pod, events, o)
}

func diagnose(st *stock, pod *cluster.Pod, events []cluster.PodEvent, o Options) Diagnosis {
	e := &exam{stock: st, o: o, pod: pod, events: events, verdict: verdictOf(pod, events)}
	out := e.unknown()
	for _, m := range matchers() {
		if d := m(e); d != nil {
			out = *d
			break
		}
	}
	out.APIVersion, out.Kind = cluster.APIVersion, Kind
	out.Pod, out.Node = pod.Ref(), pod.Node
	if out.Cause != None {
		out.Unseen = e.unseen()
	}
	return out
}

// unseen is what a diagnosis would have used.
func (e *exam) unseen() []cluster.Unknown {
	var out []cluster.Unknown
	for _, part := range []string{cluster.PartPods, cluster.PartSlices, cluster.PartClasses, cluster.PartClaims, cluster.PartDaemonSets} {
		if reason, unknown := e.s.IsUnknown(part); unknown {
			out = append(out, cluster.Unknown{Part: part, Reason: reason})
		}
	}
	return append(out, e.o.Unseen...)
}
