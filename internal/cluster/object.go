package cluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Object is a pod that ProjectPod makes p of again: the inverse of the projection for
// whatever ProjectPod returns. It stands for the pod in files and is not the pod as it
// was: the projection does not keep which image was whose, for one, so that images are
// given to the containers in order.
func (p *Pod) Object() *corev1.Pod {
	out := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, Labels: p.Labels,
		},
		Spec:   corev1.PodSpec{NodeName: p.Node, SchedulerName: p.SchedulerName},
		Status: corev1.PodStatus{Phase: p.Phase},
	}
	if p.Owner != (Owner{}) {
		out.OwnerReferences = []metav1.OwnerReference{{
			Kind: p.Owner.Kind, Name: p.Owner.Name, UID: p.Owner.UID, Controller: ptr.To(true),
		}}
	}
	if p.Static {
		out.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
	}
	if p.HelperNode != "" {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, HelperNodeAnnotation, p.HelperNode)
	}
	if p.Terminating {
		// When it was deleted is not kept, and the zero time would read as "never".
		out.DeletionTimestamp = ptr.To(metav1.Unix(0, 0))
	}
	if p.Ready {
		out.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	if p.Waiting != "" {
		out.Status.ContainerStatuses = []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: p.Waiting, Message: p.WaitingMessage}},
		}}
	}
	p.putFacts(out)
	p.putVolumes(&out.Spec)
	p.putContainers(&out.Spec)
	p.putClaims(out)
	return out
}

// putFacts writes what one field of a pod tells alone.
func (p *Pod) putFacts(out *corev1.Pod) {
	out.CreationTimestamp = metav1.NewTime(p.Created)
	out.Finalizers = p.Finalizers
	out.Spec.Priority, out.Spec.PriorityClassName = p.Priority, p.PriorityClass
	out.Spec.TerminationGracePeriodSeconds = p.GracePeriodSeconds
	out.Spec.RestartPolicy = p.RestartPolicy
	if p.PreemptionPolicy != "" {
		out.Spec.PreemptionPolicy = ptr.To(p.PreemptionPolicy)
	}
	if p.RuntimeClass != "" {
		out.Spec.RuntimeClassName = ptr.To(p.RuntimeClass)
	}
	for _, name := range p.SchedulingGates {
		out.Spec.SchedulingGates = append(out.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
	}
	if p.Group != "" {
		out.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(p.Group)}
	}
	p.putPlacement(&out.Spec)
	if p.CPU != 0 || p.Memory != 0 {
		list := corev1.ResourceList{}
		if p.CPU != 0 {
			list[corev1.ResourceCPU] = *resource.NewMilliQuantity(p.CPU, resource.DecimalSI)
		}
		if p.Memory != 0 {
			list[corev1.ResourceMemory] = *resource.NewQuantity(p.Memory, resource.BinarySI)
		}
		out.Spec.Resources = &corev1.ResourceRequirements{Requests: list}
	}
	if p.Guaranteed {
		out.Status.QOSClass = corev1.PodQOSGuaranteed
	}
	if c := p.Scheduled; c != nil {
		out.Status.Conditions = append(out.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: c.Status, Reason: c.Reason, Message: c.Message,
		})
	}
	out.Status.Reason, out.Status.Message = p.Reason, p.Message
}

// putPlacement writes where the pod may go; of one that has a node, what is kept of it.
func (p *Pod) putPlacement(spec *corev1.PodSpec) {
	var required *corev1.NodeSelector
	switch {
	case p.Placement != nil:
		spec.NodeSelector, spec.Tolerations = p.Placement.NodeSelector, p.Placement.Tolerations
		required = p.Placement.Required
	case len(p.NodeLabels) > 0:
		required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: p.NodeLabels}}}
	}
	if required != nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
}

func (p *Pod) putVolumes(spec *corev1.PodSpec) {
	if p.LocalStorage {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "local",
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	for i, path := range p.HostPaths {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: fmt.Sprintf("host-%d", i),
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}})
	}
}

// putContainers makes a container of each run of requests that can be one's, and one
// of each image that is left. All that come before the last init container have to be
// init containers, too: those that do not end are sidecars.
func (p *Pod) putContainers(spec *corev1.PodSpec) {
	var groups [][]Request
	for i, r := range p.Requests {
		same := false
		if i > 0 {
			last := p.Requests[i-1]
			same = last.Container == r.Container && last.Init == r.Init && last.Resource < r.Resource
		}
		if same {
			groups[len(groups)-1] = append(groups[len(groups)-1], r)
		} else {
			groups = append(groups, []Request{r})
		}
	}
	initial := 0 // groups up to the last one of an init container
	for i, g := range groups {
		if g[0].Init {
			initial = i + 1
		}
	}
	images := slices.Clone(p.Images)
	for i, g := range groups {
		c := container(g)
		if len(images) > 0 {
			c.Image, images = images[0], images[1:]
		}
		if i >= initial {
			spec.Containers = append(spec.Containers, c)
			continue
		}
		if !g[0].Init {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		spec.InitContainers = append(spec.InitContainers, c)
	}
	for i, image := range images {
		spec.Containers = append(spec.Containers, corev1.Container{Name: fmt.Sprintf("other-%d", i), Image: image})
	}
	p.putOnContainer(spec)
}

// putOnContainer gives to one container what the projection says of any.
func (p *Pod) putOnContainer(spec *corev1.PodSpec) {
	c := &corev1.Container{}
	switch {
	case len(spec.InitContainers) > 0:
		c = &spec.InitContainers[0]
	case len(spec.Containers) > 0:
		c = &spec.Containers[0]
	}
	if p.Privileged {
		c.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	}
	if p.VisibleDevices != "" {
		c.Env = []corev1.EnvVar{{Name: visibleDevicesVariable, Value: p.VisibleDevices}}
	}
}

func container(requests []Request) corev1.Container {
	list := corev1.ResourceList{}
	for _, r := range requests {
		list[r.Resource] = *resource.NewQuantity(r.Count, resource.DecimalSI)
	}
	return corev1.Container{
		Name:      requests[0].Container,
		Resources: corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()},
	}
}

// putClaims names every claim in the spec. One that is not generated yet has neither
// a name nor a status; it takes one of the templates. The status of a template that is
// left says that there is nothing more to generate of it.
func (p *Pod) putClaims(out *corev1.Pod) {
	templates := p.ClaimTemplates
	for i, claim := range p.Claims {
		ref := corev1.PodResourceClaim{Name: fmt.Sprintf("claim-%d", i)}
		switch {
		case claim != "":
			ref.ResourceClaimName = ptr.To(claim)
		case len(templates) > 0:
			ref.ResourceClaimTemplateName, templates = ptr.To(templates[0]), templates[1:]
		}
		out.Spec.ResourceClaims = append(out.Spec.ResourceClaims, ref)
	}
	for i, template := range templates {
		name := fmt.Sprintf("template-%d", i)
		out.Spec.ResourceClaims = append(out.Spec.ResourceClaims,
			corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: ptr.To(template)})
		out.Status.ResourceClaimStatuses = append(out.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: name})
	}
	if p.Bridge == nil {
		return
	}
	status := &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: p.Bridge.Claim}
	for _, m := range p.Bridge.Mappings {
		status.RequestMappings = append(status.RequestMappings, corev1.ContainerExtendedResourceRequest{
			ContainerName: m.Container, ResourceName: string(m.Resource), RequestName: m.Request,
		})
	}
	out.Status.ExtendedResourceClaimStatus = status
}
