package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/dramigrate/dramigrate/test/cluster/e2e"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// A podOption changes a pod before it is created.
type podOption func(*corev1.PodSpec)

// withClaim adds a ResourceClaim and gives it to the container.
func withClaim(name string) podOption {
	return func(p *corev1.PodSpec) {
		p.ResourceClaims = append(p.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &name})
		r := &p.Containers[0].Resources
		r.Claims = append(r.Claims, corev1.ResourceClaim{Name: name})
	}
}

func withPriority(class string) podOption {
	return func(p *corev1.PodSpec) { p.PriorityClassName = class }
}

// asking is a container's request for an extended resource.
func asking(name string, count int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceName(name): *resource.NewQuantity(int64(count), resource.DecimalSI)}
}

// newPod is a workload on the scene's node that asks for some of an extended resource,
// or for none.
func (s *scene) newPod(name, extended string, count int, options ...podOption) *corev1.Pod {
	p := manifests.WorkloadPod(s.namespace, name, map[string]string{corev1.LabelHostname: s.node})
	p.Spec.Containers[0].Resources.Limits = nil
	if count > 0 {
		p.Spec.Containers[0].Resources.Limits = asking(extended, count)
	}
	for _, option := range options {
		option(&p.Spec)
	}
	return p
}

// pod creates [scene.newPod].
func (s *scene) pod(ctx context.Context, name, extended string, count int, options ...podOption) error {
	_, err := s.Client().CoreV1().Pods(s.namespace).Create(ctx, s.newPod(name, extended, count, options...), metav1.CreateOptions{})
	return err
}

// podIs is what has become of a pod.
type podIs struct {
	node, state, reason, message string
	// claim is the generated claim that serves its extended resources; empty if the
	// plugin does or nothing is decided.
	claim string
	// gpus are those that its first container has seen.
	gpus []string
}

// The states of a pod that matter here.
const (
	running       = "running"
	failed        = "failed"
	unschedulable = "unschedulable"
	waiting       = "waiting"
	undecided     = "undecided"
	gone          = "gone"
)

func (p podIs) String() string {
	out := p.state
	if p.node != "" {
		out += " on node/" + p.node
	}
	switch {
	case p.claim != "":
		out += " with the generated claim " + p.claim
	case p.node != "":
		out += " without a generated claim"
	}
	if p.state == running || p.state == failed {
		out += fmt.Sprintf(", sees %d GPUs", len(p.gpus))
	}
	if p.reason != "" || p.message != "" {
		out += fmt.Sprintf(", %s: %s", p.reason, p.message)
	}
	return out
}

// says wants a state with a reason and a part of a message.
func (p podIs) says(state, reason, text string) bool {
	return p.state == state && p.reason == reason && strings.Contains(p.message, text)
}

// byDRA and byPlugin want it to run with GPUs from there.
func (p podIs) byDRA() bool    { return p.state == running && p.claim != "" && len(p.gpus) > 0 }
func (p podIs) byPlugin() bool { return p.state == running && p.claim == "" && len(p.gpus) > 0 }

// look reads a pod.
func (s *scene) look(ctx context.Context, name string) (podIs, error) {
	p, err := s.Client().CoreV1().Pods(s.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return podIs{state: gone}, nil
	}
	if err != nil {
		return podIs{}, err
	}
	is := podIs{node: p.Spec.NodeName, state: undecided}
	if status := p.Status.ExtendedResourceClaimStatus; status != nil && len(status.RequestMappings) > 0 {
		is.claim = status.ResourceClaimName
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			is.state, is.reason, is.message = unschedulable, c.Reason, c.Message
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			is.state, is.reason, is.message = waiting, w.Reason, w.Message
		}
	}
	switch p.Status.Phase {
	case corev1.PodFailed:
		is.state, is.reason, is.message = failed, p.Status.Reason, p.Status.Message
	case corev1.PodRunning:
		if is.state == undecided {
			is.state = running
		}
	}
	if is.state == running || is.state == failed && is.reason == "" {
		// A container that has just begun may have written nothing yet.
		if is.gpus, err = s.Seen(ctx, p); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) {
			return podIs{}, err
		}
	}
	return is, nil
}

// becomes waits until a pod is as it should be, and returns how it is then.
func (s *scene) becomes(ctx context.Context, name, want string, isSo func(podIs) bool) (podIs, error) {
	var is podIs
	err := eventually(ctx, patience, func() string {
		var err error
		if is, err = s.look(ctx, name); err != nil {
			return err.Error()
		}
		if isSo(is) {
			return ""
		}
		return fmt.Sprintf("want pod %s %s; got: %s", name, want, is)
	})
	return is, err
}

// runsByDRA, runsByPlugin and pending are the usual ends of a pod.
func (s *scene) runsByDRA(ctx context.Context, name string) (podIs, error) {
	return s.becomes(ctx, name, "running with GPUs from DRA", podIs.byDRA)
}

func (s *scene) runsByPlugin(ctx context.Context, name string) (podIs, error) {
	return s.becomes(ctx, name, "running with GPUs from the plugin", podIs.byPlugin)
}

func (s *scene) pending(ctx context.Context, name, text string) error {
	is, err := s.becomes(ctx, name, fmt.Sprintf("pending, %s: …%s…", corev1.PodReasonUnschedulable, text),
		func(is podIs) bool { return is.says(unschedulable, corev1.PodReasonUnschedulable, text) })
	if err == nil {
		s.saw("PodScheduled=False %s: %s", is.reason, is.message)
	}
	return err
}

// bound waits until a pod has a node; it need not run.
func (s *scene) bound(ctx context.Context, name string) (podIs, error) {
	return s.becomes(ctx, name, "bound", func(is podIs) bool { return is.node != "" })
}

// remove deletes a pod and waits until it and the claims that were made for it are gone.
func (s *scene) remove(ctx context.Context, name string) error {
	err := s.Client().CoreV1().Pods(s.namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return eventually(ctx, patience, func() string {
		is, err := s.look(ctx, name)
		if err != nil {
			return err.Error()
		}
		if is.state != gone {
			return fmt.Sprintf("pod %s is still there: %s", name, is)
		}
		claims, err := s.claims(ctx)
		if err != nil {
			return err.Error()
		}
		for _, c := range claims {
			if owner := metav1.GetControllerOf(&c); owner != nil && owner.Name == name {
				return "claim " + c.Name + " is still there"
			}
		}
		return ""
	})
}

// event waits for an event on a pod with a reason and a part of its text.
func (s *scene) event(ctx context.Context, pod, reason, text string) error {
	var last []string
	err := eventually(ctx, patience, func() string {
		list, err := s.Client().CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.Set{"involvedObject.name": pod, "involvedObject.kind": "Pod"}.String()})
		if err != nil {
			return err.Error()
		}
		last = nil
		for _, e := range list.Items {
			if e.Reason == reason && strings.Contains(e.Message, text) {
				s.saw("event %s %s: %s", e.Type, e.Reason, e.Message)
				return ""
			}
			last = append(last, e.Reason+": "+e.Message)
		}
		return fmt.Sprintf("want an event %s: …%s… on pod %s; got: %q", reason, text, pod, last)
	})
	return err
}

// same are the GPUs that both see.
func same(a, b podIs) []string {
	return slices.DeleteFunc(slices.Clone(a.gpus), func(id string) bool { return !slices.Contains(b.gpus, id) })
}

const gpu = e2e.Resource
