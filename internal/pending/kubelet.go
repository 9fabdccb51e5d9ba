package pending

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

// starting says that a waiting reason is one of every pod that starts.
func starting(reason string) bool {
	return reason == "ContainerCreating" || reason == "PodInitializing"
}

// drivers are those of the devices that the pod's claims hold.
func (e *exam) drivers() []string {
	names := slices.Clone(e.pod.Claims)
	if e.pod.Bridge != nil {
		names = append(names, e.pod.Bridge.Claim)
	}
	var out []string
	for _, name := range names {
		c := e.claims[e.pod.Namespace+"/"+name]
		if c == nil || c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if !slices.Contains(out, r.Driver) {
				out = append(out, r.Driver)
			}
		}
	}
	return out
}

// gone are the drivers that the pod needs and that have neither slices nor a ready pod
// on its node.
func (e *exam) gone() []string {
	for _, part := range []string{cluster.PartSlices, cluster.PartClaims, cluster.PartPods, cluster.PartDaemonSets} {
		if _, unread := e.s.IsUnknown(part); unread {
			return nil
		}
	}
	view := cluster.NodeView{Slices: e.slices[e.pod.Node]}
	return slices.DeleteFunc(e.drivers(), func(d string) bool {
		return e.driverReady(d, e.pod.Node) || len(view.SlicesOf(d)) > 0 && len(e.inv.DriversFor(d)) == 0
	})
}

const notRegistered = "is not registered"

// unreachable is what gRPC says of a driver that has gone and that the kubelet has not
// struck off yet: its socket is not there, or nobody answers.
const unreachable = "code = Unavailable"

// cannotEnd is a pod that is being deleted, and whose devices nobody can release
// (pkg/kubelet/kubelet_pods.go, v1.37.2: the object goes when no claim is left).
func cannotEnd(e *exam) *Diagnosis {
	if !e.pod.Terminating || !e.bound() {
		return nil
	}
	gone := e.gone()
	if len(gone) == 0 {
		return nil
	}
	return &Diagnosis{Cause: CannotEnd,
		Why: fmt.Sprintf("it is being deleted, and driver %s, which has to release its devices, does not run on node/%s: it stays until the driver is back",
			few(gone), e.pod.Node),
		Evidence: []string{"node/" + e.pod.Node + ": " + e.driverOn(e.pod.Node)},
		Remedy:   "bring the driver's pod back to the node; do not delete the pod by force: the kubelet would keep the claim"}
}

// ending is any other pod that is being deleted.
func ending(e *exam) *Diagnosis {
	if !e.pod.Terminating {
		return nil
	}
	if len(e.pod.Finalizers) > 0 {
		return &Diagnosis{Cause: NotDevices, Why: "it is being deleted, and waits for its finalizers: " + few(e.pod.Finalizers),
			Evidence: []string{"metadata.finalizers: " + few(e.pod.Finalizers)}, Remedy: "see who has to take the finalizers away", Certain: true}
	}
	return &Diagnosis{Cause: None, Why: "it is being deleted", Certain: true}
}

func orSome(names []string) string {
	if len(names) == 0 {
		return "of its claim"
	}
	return few(names)
}

// floor is the first kubelet on which pods that DRA serves by name get their devices
// without a feature gate (pkg/features/kube_features.go, DRAExtendedResource).
func floor() *version.Version { return version.MajorMinor(1, 36) }

// oldKubelet is the version of the pod's kubelet if that is below the floor.
func (e *exam) oldKubelet() string {
	n := e.node[e.pod.Node]
	if n == nil {
		return ""
	}
	v, err := version.ParseGeneric(n.Status.NodeInfo.KubeletVersion)
	if err != nil || v.AtLeast(floor()) {
		return ""
	}
	return n.Status.NodeInfo.KubeletVersion
}

// lacking says that the kubelet refused the pod for an extended resource.
func (e *exam) lacking() bool {
	name, out := strings.CutPrefix(e.pod.Reason, "OutOf")
	return e.pod.Phase == corev1.PodFailed && (out && cluster.IsExtended(corev1.ResourceName(name)) || e.pod.Reason == "UnexpectedAdmissionError")
}

// refusedByOldKubelet is a pod that DRA serves, on a kubelet that looks for the plugin's
// devices.
func refusedByOldKubelet(e *exam) *Diagnosis {
	old := e.oldKubelet()
	if !e.lacking() || old == "" || e.pod.Bridge == nil {
		return nil
	}
	return &Diagnosis{Cause: OldKubelet, Certain: true,
		Why:      fmt.Sprintf("the kubelet of node/%s is %s: below 1.36 it does not know that DRA serves the pod, and refuses it", e.pod.Node, old),
		Evidence: []string{fmt.Sprintf("status %s: %s", e.pod.Reason, e.pod.Message), "served by claim " + e.pod.Bridge.Claim},
		Remedy: fmt.Sprintf("close the node (`kubectl cordon %s`), then upgrade its kubelet to 1.36 or later, or put its pool back: %s",
			e.pod.Node, words.Command("rollback", e.poolOf(e.pod.Node)))}
}

// refused is a pod that the scheduler bound by a number that the kubelet had not.
func refused(e *exam) *Diagnosis {
	if !e.lacking() {
		return nil
	}
	return &Diagnosis{Cause: Refused, Certain: true,
		Why:      fmt.Sprintf("the kubelet of node/%s refused it when it came: it had no such device left", e.pod.Node),
		Evidence: []string{fmt.Sprintf("status %s: %s", e.pod.Reason, e.pod.Message)},
		Remedy:   "make it again, if its owner does not: a pod that was refused stays so; if it happens again, see whether the plugin runs on the node"}
}

// ranWithout is a pod whose container runs, on a kubelet that gives it no device.
func ranWithout(e *exam) *Diagnosis {
	old := e.oldKubelet()
	if e.pod.Phase != corev1.PodRunning || old == "" || e.pod.Bridge == nil || e.pod.Waiting != "" {
		return nil
	}
	return &Diagnosis{Cause: OldKubelet,
		Why:      fmt.Sprintf("it runs without its devices, unless the gate DRAExtendedResource is on in the kubelet of node/%s: that is %s, and does not know them by itself below 1.36", e.pod.Node, old),
		Evidence: []string{"served by claim " + e.pod.Bridge.Claim},
		Remedy:   "look into the container (nvidia-smi -L); upgrade the kubelet, or " + words.Command("rollback", e.poolOf(e.pod.Node))}
}

// kubeletRemembers is mended in Kubernetes 1.38 (kubernetes/kubernetes#141426).
func kubeletRemembers(e *exam) *Diagnosis {
	_, by := e.says("endpoint not found in cache for a registered resource")
	if !e.bound() || by == "" || e.pod.Ready || e.pod.Waiting != "CreateContainerConfigError" && !starting(e.pod.Waiting) {
		return nil
	}
	return &Diagnosis{Cause: KubeletRemembers, Certain: true,
		Why:      fmt.Sprintf("the kubelet of node/%s still remembers devices of a plugin that has left, and fails on them; a restart does not cure it", e.pod.Node),
		Evidence: []string{by},
		Remedy:   fmt.Sprintf("have the kubelet list its devices once: %s does, and so does any program that calls List of PodResources on the node", words.Command("apply", e.poolOf(e.pod.Node)))}
}

// driverGone is a driver that is not there to prepare devices. Without events that can
// only be concluded.
func driverGone(e *exam) *Diagnosis {
	if !e.prepares() {
		return nil
	}
	ev := e.event(failedPrepare)
	said := ev != nil && (strings.Contains(ev.Message, notRegistered) || len(e.gone()) > 0 && strings.Contains(ev.Message, unreachable))
	if !said && (ev != nil || len(e.gone()) == 0 || e.isYoung()) {
		return nil
	}
	out := &Diagnosis{Cause: DriverGone, Certain: said,
		Why:      fmt.Sprintf("driver %s is not registered with the kubelet of node/%s, or does not answer it", orSome(e.drivers()), e.pod.Node),
		Evidence: []string{"node/" + e.pod.Node + ": " + e.driverOn(e.pod.Node)},
		Remedy:   fmt.Sprintf("bring the driver's pod back to the node, or delete the pod, so that its owner makes one that can go to another; %s says where the node stands", words.Command("status", e.poolOf(e.pod.Node)))}
	if said {
		out.Evidence = append([]string{eventText(*ev)}, out.Evidence...)
	}
	return out
}

// failedPrepare is the reason of the kubelet's event (pkg/kubelet/events/event.go).
const failedPrepare = "FailedPrepareDynamicResources"

// prepares says that the pod is bound and no container of it has begun.
func (e *exam) prepares() bool {
	return e.bound() && e.pod.Phase == corev1.PodPending && (e.pod.Waiting == "" || starting(e.pod.Waiting))
}

// prepareFails is any other failure before the containers start.
func prepareFails(e *exam) *Diagnosis {
	ev := e.event(failedPrepare)
	if ev == nil || !e.prepares() {
		return nil
	}
	return &Diagnosis{Cause: PrepareFails, Certain: true,
		Why:      fmt.Sprintf("its devices cannot be prepared on node/%s", e.pod.Node),
		Evidence: []string{eventText(*ev), "node/" + e.pod.Node + ": " + e.driverOn(e.pod.Node)},
		Remedy:   "see the log of the driver's pod on the node"}
}

// notInjected is a container that the runtime could not give its devices.
func notInjected(e *exam) *Diagnosis {
	text, by := e.says("CDI device")
	if !e.bound() || text == "" || e.pod.Ready {
		return nil
	}
	return &Diagnosis{Cause: PrepareFails, Certain: true,
		Why:      fmt.Sprintf("the container runtime of node/%s does not find the devices that the driver has prepared", e.pod.Node),
		Evidence: []string{by},
		Remedy:   "see that the runtime reads the folder into which the driver writes (cdi_spec_dirs, by default /etc/cdi and /var/run/cdi), and the log of the driver's pod"}
}

// runs is a pod that nothing is wrong with.
func runs(e *exam) *Diagnosis {
	switch {
	case e.pod.Phase == corev1.PodSucceeded:
		return &Diagnosis{Cause: None, Why: "it has ended well", Certain: true}
	case e.bound() && e.pod.Ready:
		return &Diagnosis{Cause: None, Why: "it runs", Certain: true}
	case e.pod.Phase == corev1.PodRunning && e.pod.Waiting == "":
		return &Diagnosis{Cause: None, Why: "it runs; it is not ready, by its own probes", Certain: true}
	}
	return nil
}

// failsOtherwise is a pod whose container fails, or does not start, for reasons that a
// kubelet does not give for devices.
func failsOtherwise(e *exam) *Diagnosis {
	switch {
	case e.pod.Phase == corev1.PodFailed:
		return &Diagnosis{Cause: NotDevices, Certain: e.pod.Reason != "",
			Why:      strings.TrimSpace("not a matter of devices: it has failed " + e.pod.Reason),
			Evidence: []string{strings.TrimSpace(e.pod.Message + " " + e.pod.Waiting)},
			Remedy:   fmt.Sprintf("`kubectl logs -n %s %s`", e.pod.Namespace, e.pod.Name)}
	case e.bound() && e.pod.Waiting != "" && !starting(e.pod.Waiting):
		return &Diagnosis{Cause: NotDevices,
			Why:      "not a matter of devices, as far as the kubelet says: " + e.pod.Waiting,
			Evidence: []string{strings.TrimSuffix("container waiting, "+e.pod.Waiting+": "+e.pod.WaitingMessage, ": ")},
			Remedy:   fmt.Sprintf("`kubectl describe pod -n %s %s`", e.pod.Namespace, e.pod.Name)}
	}
	return nil
}
