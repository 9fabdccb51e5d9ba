package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// A scene is the bench as one claim uses it: with a namespace and names of its own.
type scene struct {
	*bench
	// node is the first of the claim's place.
	node string
	// namespace is empty at the beginning.
	namespace string

	mu   sync.Mutex
	seen []string
}

func newScene(ctx context.Context, b *bench, c claim) (*scene, error) {
	s := &scene{bench: b, node: c.place.node(), namespace: strings.ReplaceAll(strings.ToLower(c.id), ".", "")}
	_, err := b.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	// Without its account no pod can be made in a namespace.
	return s, eventually(ctx, patience, func() string {
		if _, err := b.Client().CoreV1().ServiceAccounts(s.namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// saw records what a person would quote.
func (s *scene) saw(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, fmt.Sprintf(format, args...))
}

// observed is what was recorded.
func (s *scene) observed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// own is a name that only this claim uses, with a domain: for a driver, a class or an
// extended resource.
func (s *scene) own(name string) string { return name + "." + s.namespace + ".example.com" }

// ownResource is an extended resource name that only this claim uses.
func (s *scene) ownResource() string { return s.namespace + ".example.com/gpu" }

// class makes a DeviceClass of the real driver's GPUs, with an extended resource name
// unless that is empty.
func (s *scene) class(ctx context.Context, name, resource string) (*resourceapi.DeviceClass, error) {
	return s.classOf(ctx, name, resource, manifests.DeviceClass().Spec.Selectors[0].CEL.Expression)
}

func (s *scene) classOf(ctx context.Context, name, resource, expression string) (*resourceapi.DeviceClass, error) {
	c := &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{
			{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}},
	}
	if resource != "" {
		c.Spec.ExtendedResourceName = &resource
	}
	return s.Client().ResourceV1().DeviceClasses().Create(ctx, c, metav1.CreateOptions{})
}

// claim makes a ResourceClaim for some devices of a class.
func (s *scene) claim(ctx context.Context, name, class string, count int64, tolerations ...resourceapi.DeviceToleration) error {
	_, err := s.Client().ResourceV1().ResourceClaims(s.namespace).Create(ctx, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "gpu",
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
				Tolerations: tolerations,
			},
		}}}},
	}, metav1.CreateOptions{})
	return err
}

// claims are the namespace's, the generated ones among them.
func (s *scene) claims(ctx context.Context) ([]resourceapi.ResourceClaim, error) {
	list, err := s.Client().ResourceV1().ResourceClaims(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// slice publishes devices on the node for a driver that no program stands for, as one
// of a pool of several.
func (s *scene) slice(ctx context.Context, driver string, of int64, devices ...resourceapi.Device) (*resourceapi.ResourceSlice, error) {
	return s.Client().ResourceV1().ResourceSlices().Create(ctx, &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{GenerateName: s.namespace + "-"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: &s.node,
			Pool:    resourceapi.ResourcePool{Name: s.node, Generation: 1, ResourceSliceCount: of},
			Devices: devices,
		},
	}, metav1.CreateOptions{})
}

// isOf selects the devices of a driver.
func isOf(driver string) string { return fmt.Sprintf("device.driver == '%s'", driver) }
