package helperpod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// stage says how far a pod has come and what it waits for, in words for a person.
// The kind is what is the matter if it never comes further.
func stage(v view) (Kind, string) {
	p := v.pod
	switch {
	case v.gone:
		return Deleted, "the pod was deleted before it had ended"
	case p == nil:
		return NotStarted, orTrouble(v, "the pod to show up")
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return Failed, ending(p)
	case p.Spec.NodeName == "":
		return NotScheduled, orTrouble(v, unscheduled(v))
	}
	kind, what := starting(v)
	return kind, orTrouble(v, what)
}

func orTrouble(v view, what string) string {
	if v.trouble != "" {
		return what + " (" + v.trouble + ")"
	}
	return what
}

// unscheduled quotes the scheduler: its condition on the pod, or its event, which
// says more while binding fails (a plugin's PreBind error is no condition).
func unscheduled(v view) string {
	for _, c := range v.pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			return "not scheduled: " + reasoned("", c.Message)
		}
	}
	if v.warning != (warning{}) {
		return "not scheduled: " + v.warning.String()
	}
	return "not scheduled yet"
}

// starting is about a pod that is bound and has not ended.
func starting(v view) (Kind, string) {
	for _, s := range v.pod.Status.ContainerStatuses {
		w := s.State.Waiting
		switch {
		case s.State.Running != nil:
			return Failed, "running"
		case s.State.Terminated != nil:
			return Failed, "container ended, pod ending"
		case w == nil:
			continue
		}
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ImageInspectError", "ErrImageNeverPull", "RegistryUnavailable", "SignatureValidationFailed":
			return NoImage, fmt.Sprintf("image %s: %s", s.Image, reasoned(w.Reason, w.Message))
		case "", "ContainerCreating", "PodInitializing":
		default: // CreateContainerConfigError, CreateContainerError, RunContainerError, …
			return NotStarted, "container not started: " + reasoned(w.Reason, w.Message)
		}
	}
	switch v.warning.reason {
	case "", "FailedScheduling": // the pod is past that
		return NotStarted, "starting"
	case "FailedPrepareDynamicResources":
		return NotPrepared, v.warning.String()
	case "FailedMount":
		return NotMounted, "starting: " + v.warning.String()
	}
	return NotStarted, "starting: " + v.warning.String()
}

// ending says how a pod ended.
func ending(p *corev1.Pod) string {
	if t := terminated(p); t != nil {
		return fmt.Sprintf("ended with exit code %d%s", t.ExitCode, suffix(reasoned(t.Reason, t.Message)))
	}
	// The kubelet refused the pod or ended it before a container ran.
	return "ended before its container ran" + suffix(reasoned(p.Status.Reason, p.Status.Message))
}

// terminated is the end of the pod's container; nil if it never ran.
func terminated(p *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == container && s.State.Terminated != nil {
			return s.State.Terminated
		}
	}
	return nil
}

// remnant is how a kubelet says that it cannot start a container because it
// remembers an allocation of a device plugin that left (v1.37.2,
// pkg/kubelet/cm/devicemanager/manager.go, callPreStartContainerIfNeeded). What
// cures it is said at nodeprobe's List.
const remnant = "endpoint not found in cache for a registered resource"

// absent is how the kubelet says that a file or folder of the node is not there, or is
// not one (pkg/volume/hostpath/host_path.go, checkTypeInternal, v1.37.2).
const absent = "hostPath type check failed"

// hopeless is what a pod waits for that does not come by itself.
func hopeless(kind Kind, v view) bool {
	if kind == NotMounted && strings.Contains(v.warning.message, absent) {
		return true
	}
	if v.pod == nil {
		return false
	}
	for _, s := range v.pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && (w.Reason == "InvalidImageName" || strings.Contains(w.Message, remnant)) {
			return true
		}
	}
	return false
}

func reasoned(reason, message string) string {
	message = strings.TrimSuffix(strings.TrimSpace(message), ".")
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

func suffix(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// ended waits for a pod that runs to its end.
func (j *job) ended(v view) (string, error) {
	kind, what := stage(v)
	if kind == Deleted || hopeless(kind, v) {
		return "", j.failed(kind, what, nil).naming(v)
	}
	if v.pod != nil && (v.pod.Status.Phase == corev1.PodSucceeded || v.pod.Status.Phase == corev1.PodFailed) {
		if terminated(v.pod) == nil {
			return "", j.failed(Failed, what, nil)
		}
		return "", nil
	}
	return what, nil
}
