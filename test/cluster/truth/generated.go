package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// generates is where the claim of a pod is made.
const generates = "pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go; k8s.io/api v0.37.2 resource/v1/types.go"

func generatedClaims() []claim {
	return []claim{
		{
			id: "K1.5a", place: served, holds: ">=1.35", source: generates,
			says: "A pod has one generated claim for all its containers: generateName <pod>-extended-resources-, annotation " +
				resourceapi.ExtendedResourceClaimAnnotation + ", controlled by the pod, finalizer " + resourceapi.Finalizer +
				", a request container-<i>-request-<j> each (i over init containers and containers, j over the sorted resource names, cpu among them)",
			prove: generatedClaim,
		},
		{
			id: "K1.5b", place: served, holds: ">=1.35", source: "k8s.io/api v0.37.2 resource/v1/types.go, AllocationResultsMaxSize; KEP-5004 says 128",
			texts: []string{tooMany},
			says:  "A pod that asks for 32 devices is served, one that asks for 33 is not, although 64 are free: SchedulerError instead of Unschedulable",
			prove: atMost32,
		},
		{
			id: "K1.5c", place: served, holds: ">=1.35", source: "pkg/scheduler/schedule_one.go, findNodesThatPassFilters; " + allocates,
			texts: []string{tooMany},
			says:  "Once a class carries the name, a pod that asks for more than 32 is bound to no node, not even to one whose plugin offers that many, unless it is pinned to such nodes; nothing need be published for the class",
			prove: moreThan32,
		},
	}
}

func generatedClaim(ctx context.Context, s *scene) error {
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	p := s.newPod("train", gpu, 1)
	first := &p.Spec.Containers[0]
	first.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	second := *first.DeepCopy()
	second.Name = "second"
	second.Resources.Requests = nil
	second.Resources.Limits = asking(gpu, 2)
	initial := *second.DeepCopy()
	initial.Name, initial.Args = "initial", []string{"-L"}
	initial.Resources.Limits = asking(gpu, 1)
	p.Spec.Containers = append(p.Spec.Containers, second)
	p.Spec.InitContainers = []corev1.Container{initial}
	if _, err := s.Client().CoreV1().Pods(s.namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return err
	}
	is, err := s.becomes(ctx, "train", "running with a generated claim", func(is podIs) bool { return is.state == running && is.claim != "" })
	if err != nil {
		return err
	}
	claims, err := s.claims(ctx)
	if err != nil {
		return err
	}
	if len(claims) != 1 || claims[0].Name != is.claim {
		return fmt.Errorf("want one claim, named in the pod's status (%s); got %d", is.claim, len(claims))
	}
	c := claims[0]
	if err := s.isGenerated(ctx, &c); err != nil {
		return err
	}
	var requests []string
	for _, r := range c.Spec.Devices.Requests {
		if r.Exactly == nil {
			return fmt.Errorf("request %s asks for no exact number", r.Name)
		}
		requests = append(requests, fmt.Sprintf("%s %d of %s", r.Name, r.Exactly.Count, r.Exactly.DeviceClassName))
	}
	slices.Sort(requests)
	s.saw("requests: %s", strings.Join(requests, ", "))
	class := manifests.DeviceClass().Name
	want := []string{"container-1-request-1 1 of " + class, "container-2-request-0 2 of " + class}
	if !slices.Equal(requests, want) {
		return fmt.Errorf("want requests %q; got %q", want, requests)
	}
	err = s.isMapped(ctx, "train", []string{
		"cuda nvidia.com/gpu container-1-request-1", "initial nvidia.com/gpu container-1-request-1",
		"second nvidia.com/gpu container-2-request-0",
	})
	if err != nil {
		return err
	}
	for container, count := range map[string]int{manifests.WorkloadContainer: 1, "second": 2} {
		if err := s.sees(ctx, "train", container, count); err != nil {
			return err
		}
	}
	return nil
}

// sees waits until a container of a pod with several has told how many GPUs it sees.
func (s *scene) sees(ctx context.Context, pod, container string, want int) error {
	return eventually(ctx, patience, func() string {
		log, err := s.Client().CoreV1().Pods(s.namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container}).DoRaw(ctx)
		if err != nil {
			return err.Error()
		}
		if got := strings.Count(string(log), "UUID: "); got != want {
			return fmt.Sprintf("want container %s to see %d GPUs; got %d", container, want, got)
		}
		return ""
	})
}

// isGenerated wants what the claim says of itself to be as documented.
func (s *scene) isGenerated(ctx context.Context, c *resourceapi.ResourceClaim) error {
	pod, err := s.Client().CoreV1().Pods(s.namespace).Get(ctx, "train", metav1.GetOptions{})
	if err != nil {
		return err
	}
	owner := metav1.GetControllerOf(c)
	switch {
	case c.GenerateName != "train-extended-resources-":
		return fmt.Errorf("want generateName train-extended-resources-; got %q", c.GenerateName)
	case c.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "true":
		return fmt.Errorf("want the annotation %s=true; got %v", resourceapi.ExtendedResourceClaimAnnotation, c.Annotations)
	case owner == nil || owner.UID != pod.UID:
		return fmt.Errorf("want the pod as controller; got %v", owner)
	case !slices.Contains(c.Finalizers, resourceapi.Finalizer):
		return fmt.Errorf("want the finalizer %s; got %q", resourceapi.Finalizer, c.Finalizers)
	case len(c.Status.ReservedFor) != 1 || c.Status.ReservedFor[0].UID != pod.UID:
		return fmt.Errorf("want it reserved for the pod; got %v", c.Status.ReservedFor)
	}
	return nil
}

// isMapped wants the pod's status to say which request serves which container.
func (s *scene) isMapped(ctx context.Context, name string, want []string) error {
	pod, err := s.Client().CoreV1().Pods(s.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var got []string
	for _, m := range pod.Status.ExtendedResourceClaimStatus.RequestMappings {
		got = append(got, m.ContainerName+" "+m.ResourceName+" "+m.RequestName)
	}
	slices.Sort(got)
	s.saw("requestMappings: %s", strings.Join(got, ", "))
	if !slices.Equal(got, want) {
		return fmt.Errorf("want request mappings %q; got %q", want, got)
	}
	return nil
}

// tooMany is what the scheduler says of a pod that asks for more than a claim can hold.
const tooMany = "exceeds the claim limit of 32"

func atMost32(ctx context.Context, s *scene) error {
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	if err := s.pod(ctx, "most", gpu, resourceapi.AllocationResultsMaxSize); err != nil {
		return err
	}
	_, err := s.becomes(ctx, "most", "running with 32 GPUs from DRA", func(is podIs) bool { return is.byDRA() && len(is.gpus) == 32 })
	if err != nil {
		return err
	}
	if err := s.remove(ctx, "most"); err != nil {
		return err
	}
	if err := s.pod(ctx, "more", gpu, resourceapi.AllocationResultsMaxSize+1); err != nil {
		return err
	}
	return s.schedulerFails(ctx, "more", tooMany)
}

// advertises has a node offer some of the claim's own resource, as a plugin would: the
// scheduler looks at the number alone.
func (s *scene) advertises(ctx context.Context, node string, count int) error {
	patch := fmt.Sprintf(`{"status":{"capacity":{%q:"%d"}}}`, s.ownResource(), count)
	_, err := s.Client().CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	return eventually(ctx, patience, func() string {
		n, err := s.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if q := n.Status.Allocatable[corev1.ResourceName(s.ownResource())]; q.Value() != int64(count) {
			return fmt.Sprintf("node/%s: allocatable %s is %s, want %d", node, s.ownResource(), q.String(), count)
		}
		return ""
	})
}

// anywhere lets a pod go to every node.
func anywhere(p *corev1.PodSpec) { p.NodeSelector = nil }

func moreThan32(ctx context.Context, s *scene) error {
	if err := s.advertises(ctx, spare, 40); err != nil {
		return err
	}
	if _, err := s.classOf(ctx, s.own("class"), s.ownResource(), isOf(s.own("driver"))); err != nil {
		return err
	}
	if err := s.pod(ctx, "legacy", s.ownResource(), 33, anywhere); err != nil {
		return err
	}
	if err := s.schedulerFails(ctx, "legacy", tooMany); err != nil {
		return err
	}
	return s.fitsOn(ctx, spare, 33)
}

// fitsOn wants a pod to be bound that asks for the claim's own resource and is pinned
// to another node.
func (s *scene) fitsOn(ctx context.Context, node string, count int) error {
	elsewhere := &scene{bench: s.bench, node: node, namespace: s.namespace}
	if err := elsewhere.pod(ctx, "pinned", s.ownResource(), count); err != nil {
		return err
	}
	_, err := elsewhere.bound(ctx, "pinned")
	return err
}
