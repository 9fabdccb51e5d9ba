package cluster

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubectl/pkg/util/qos"
)

// ProjectPod takes from a pod what the tool needs of it. The result shares no
// memory with the pod but strings and maps, which nobody writes to.
func ProjectPod(p *corev1.Pod) Pod {
	out := Pod{
		Namespace:     p.Namespace,
		Name:          p.Name,
		UID:           p.UID,
		Node:          p.Spec.NodeName,
		Phase:         p.Status.Phase,
		Labels:        p.Labels,
		Terminating:   p.DeletionTimestamp != nil,
		Ready:         podReady(p),
		SchedulerName: p.Spec.SchedulerName,
		Claims:        claimNames(p),
		Bridge:        bridge(p.Status.ExtendedResourceClaimStatus),
		Created:       created(p.CreationTimestamp),
		PriorityClass: p.Spec.PriorityClassName,
		Finalizers:    p.Finalizers,
		Guaranteed:    qos.GetPodQOS(p) == corev1.PodQOSGuaranteed,
		Group:         podGroup(p),
		Queue:         p.Labels[QueueLabel],
		NodeLabels:    nodeLabels(&p.Spec),
		Scheduled:     scheduled(p),
		Reason:        bounded(p.Status.Reason, maxReason),
		Message:       bounded(p.Status.Message, maxMessage),
	}
	out.Waiting, out.WaitingMessage = waiting(p)
	out.putPolicies(&p.Spec)
	counted := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	out.CPU, out.Memory = counted.Cpu().MilliValue(), counted.Memory().Value()
	if out.IsHelper() {
		out.HelperNode = p.Annotations[HelperNodeAnnotation]
	}
	_, out.Static = p.Annotations[corev1.MirrorPodAnnotationKey]
	if ref := metav1.GetControllerOf(p); ref != nil {
		out.Owner = Owner{Kind: ref.Kind, Name: ref.Name, UID: ref.UID}
	}
	for i := range p.Spec.Volumes {
		switch v := &p.Spec.Volumes[i]; {
		case v.EmptyDir != nil:
			out.LocalStorage = true
		case v.HostPath != nil:
			out.HostPaths = append(out.HostPaths, v.HostPath.Path)
		}
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		out.addContainer(c, !sidecar)
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		out.addContainer(c, false)
	}
	out.Placement = placement(p, len(out.Requests)+len(p.Spec.ResourceClaims) > 0)
	return out
}

// addContainer takes from a container what the projection keeps of it.
func (p *Pod) addContainer(c *corev1.Container, initial bool) {
	p.Images = append(p.Images, c.Image)
	p.Requests = append(p.Requests, requests(c, initial)...)
	if s := c.SecurityContext; s != nil && s.Privileged != nil && *s.Privileged {
		p.Privileged = true
	}
	if p.VisibleDevices == "" {
		p.VisibleDevices = visibleDevices(c)
	}
}

// CachedPod is a projected pod in a watch's cache, with what the cache needs to find it.
type CachedPod struct {
	metav1.ObjectMeta
	Pod Pod
}

// CachePod projects a pod for a cache.
func CachePod(p *corev1.Pod) *CachedPod {
	return &CachedPod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion},
		Pod:        ProjectPod(p),
	}
}

// requests lists what a container asks for above zero. The API server copies limits
// to requests; a manifest that never went through it may have limits alone.
func requests(c *corev1.Container, initial bool) []Request {
	var out []Request
	add := func(list corev1.ResourceList) {
		for name, q := range list {
			known := slices.ContainsFunc(out, func(r Request) bool { return r.Resource == name })
			if IsExtended(name) && q.Value() > 0 && !known {
				out = append(out, Request{Container: c.Name, Resource: name, Count: q.Value(), Init: initial})
			}
		}
	}
	add(c.Resources.Requests)
	add(c.Resources.Limits)
	slices.SortFunc(out, func(a, b Request) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}

// claimNames resolves spec.resourceClaims. The name of a claim made from a template
// stands in the status; a status entry without a name means that no claim was
// needed (k8s.io/api/core/v1, PodResourceClaimStatus).
func claimNames(p *corev1.Pod) []string {
	var out []string
	for i := range p.Spec.ResourceClaims {
		ref := &p.Spec.ResourceClaims[i]
		if ref.ResourceClaimName != nil {
			out = append(out, *ref.ResourceClaimName)
			continue
		}
		at := slices.IndexFunc(p.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool { return s.Name == ref.Name })
		switch {
		case at < 0:
			out = append(out, "")
		case p.Status.ResourceClaimStatuses[at].ResourceClaimName != nil:
			out = append(out, *p.Status.ResourceClaimStatuses[at].ResourceClaimName)
		}
	}
	return out
}

func bridge(s *corev1.PodExtendedResourceClaimStatus) *Bridge {
	if s == nil {
		return nil
	}
	b := &Bridge{Claim: s.ResourceClaimName}
	for _, m := range s.RequestMappings {
		b.Mappings = append(b.Mappings, Mapping{
			Container: m.ContainerName,
			Resource:  corev1.ResourceName(m.ResourceName),
			Request:   m.RequestName,
		})
	}
	return b
}

func podReady(p *corev1.Pod) bool {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func waiting(p *corev1.Pod) (reason, message string) {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			switch s := list[i].State; {
			case s.Waiting != nil && s.Waiting.Reason != "":
				return s.Waiting.Reason, bounded(s.Waiting.Message, maxMessage)
			case s.Terminated != nil && s.Terminated.Reason != "" && s.Terminated.ExitCode != 0:
				return s.Terminated.Reason, terminatedMessage(s.Terminated)
			}
		}
	}
	return "", ""
}

// terminatedMessage keeps the message of a container that never ran: the runtime wrote
// it. That of one that ran is the program's own, or the end of its log.
func terminatedMessage(s *corev1.ContainerStateTerminated) string {
	switch s.Reason {
	case "StartError", "ContainerCannotRun":
		return bounded(s.Message, maxMessage)
	}
	return ""
}
