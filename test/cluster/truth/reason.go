package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// What the scheduler says of a node whose devices do not serve a pod.
const (
	cannotAllocate = "cannot allocate all claims"
	// A selector that fails on a device is an error of the scheduler, not a verdict.
	filterFails = `running "DynamicResources" filter plugin: class `
	celError    = "CEL runtime error: no such key: type"
)

// allocates is where the devices are looked for.
const allocates = "pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go; " +
	"k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/stable/allocator_stable.go"

func reasonClaims() []claim {
	return []claim{
		{
			id: "K1.1e", place: served, holds: ">=1.35", texts: []string{cannotAllocate}, source: allocates,
			says: "A mapped name on a node on which the driver publishes nothing: pending, \"cannot allocate all claims\"",
			prove: func(ctx context.Context, s *scene) error {
				return s.unserved(ctx, isOf(s.own("driver")), cannotAllocate)
			},
		},
		{
			id: "K1.1f", place: served, holds: ">=1.35", texts: []string{cannotAllocate}, source: allocates,
			says: "A class whose CEL selects none of the published devices: pending with that text, which names neither class nor attribute",
			prove: func(ctx context.Context, s *scene) error {
				if _, err := s.slice(ctx, s.own("driver"), 1, device("gpu-0", "mig")); err != nil {
					return err
				}
				return s.unserved(ctx, isOf(s.own("driver"))+s.isType("gpu"), cannotAllocate)
			},
		},
		{
			id: "K1.1g", place: served, holds: ">=1.35", texts: []string{cannotAllocate}, source: allocates,
			says: "All devices of the class are allocated: pending with that text",
			prove: func(ctx context.Context, s *scene) error {
				if _, err := s.slice(ctx, s.own("driver"), 1, device("gpu-0", "gpu")); err != nil {
					return err
				}
				if _, err := s.classOf(ctx, s.own("class"), s.ownResource(), isOf(s.own("driver"))); err != nil {
					return err
				}
				if err := s.pod(ctx, "first", s.ownResource(), 1); err != nil {
					return err
				}
				if _, err := s.bound(ctx, "first"); err != nil {
					return err
				}
				if err := s.pod(ctx, "legacy", s.ownResource(), 1); err != nil {
					return err
				}
				return s.pending(ctx, "legacy", "1 "+cannotAllocate)
			},
		},
		{
			id: "K1.1h", place: served, holds: ">=1.35", texts: []string{filterFails, celError}, source: allocates,
			says:  "A class whose CEL reads an attribute that a published device does not have: SchedulerError instead of Unschedulable, with the class, the device and the CEL error in the text",
			prove: celFails,
		},
		{
			id: "K1.1i", place: served, holds: ">=1.35", texts: []string{filterFails, celError},
			source: "pkg/scheduler/schedule_one.go, findNodesThatPassFilters; " + allocates,
			says:   "One published device on which the CEL of the class fails keeps pods from every node, also from one whose device would serve them, unless they are pinned to it",
			prove:  celFailsEverywhere,
		},
		{
			id: "K1.1j", place: served, holds: ">=1.35", texts: []string{filterFails, celError},
			source: "pkg/scheduler/schedule_one.go, findNodesThatPassFilters; " + allocates,
			says:   "Such a device keeps pods from nodes that offer the name by a plugin as well",
			prove:  celFailsForPlugin,
		},
		{
			id: "K1.9a", place: served, holds: ">=1.35", texts: []string{cannotAllocate},
			source: "k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/stable/pools_stable.go",
			says:   "A pool with fewer slices than its resourceSliceCount serves nothing: pending with that text, until the missing slice is there",
			prove:  incompletePool,
		},
	}
}

// device has a type, as the vendor's have.
func device(name, kind string) resourceapi.Device {
	return resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"type": {StringValue: &kind}}}
}

// isType adds the vendor's second condition to a selector of the claim's own driver.
func (s *scene) isType(kind string) string {
	return " && device.attributes['" + s.own("driver") + "'].type == '" + kind + "'"
}

// unserved makes a class with a selector and the claim's own resource, and wants a pod
// that asks for it to stay pending.
func (s *scene) unserved(ctx context.Context, selector, text string) error {
	if _, err := s.classOf(ctx, s.own("class"), s.ownResource(), selector); err != nil {
		return err
	}
	if err := s.pod(ctx, "legacy", s.ownResource(), 1); err != nil {
		return err
	}
	return s.pending(ctx, "legacy", text)
}

func incompletePool(ctx context.Context, s *scene) error {
	if _, err := s.slice(ctx, s.own("driver"), 2, device("gpu-0", "gpu")); err != nil {
		return err
	}
	if err := s.unserved(ctx, isOf(s.own("driver")), "1 "+cannotAllocate); err != nil {
		return err
	}
	if _, err := s.slice(ctx, s.own("driver"), 2, device("gpu-1", "gpu")); err != nil {
		return err
	}
	_, err := s.bound(ctx, "legacy")
	return err
}

// schedulerFails wants a pod not to be bound for an error of the scheduler.
func (s *scene) schedulerFails(ctx context.Context, name string, texts ...string) error {
	is, err := s.becomes(ctx, name, fmt.Sprintf("not bound, %s: …%s…", corev1.PodReasonSchedulerError, strings.Join(texts, "…")),
		func(is podIs) bool {
			return !slices.ContainsFunc(texts, func(text string) bool {
				return !is.says(unschedulable, corev1.PodReasonSchedulerError, text)
			})
		})
	if err != nil {
		return err
	}
	s.saw("PodScheduled=False %s: %s", is.reason, is.message)
	return s.event(ctx, name, "FailedScheduling", texts[0])
}

// withoutType publishes a device that has no type, and a class that reads it.
func (s *scene) withoutType(ctx context.Context) error {
	if _, err := s.slice(ctx, s.own("driver"), 1, resourceapi.Device{Name: "gpu-0"}); err != nil {
		return err
	}
	_, err := s.classOf(ctx, s.own("class"), s.ownResource(), isOf(s.own("driver"))+s.isType("gpu"))
	return err
}

func celFails(ctx context.Context, s *scene) error {
	if err := s.withoutType(ctx); err != nil {
		return err
	}
	if err := s.pod(ctx, "legacy", s.ownResource(), 1); err != nil {
		return err
	}
	return s.schedulerFails(ctx, "legacy", filterFails+s.own("class"), celError)
}

func celFailsEverywhere(ctx context.Context, s *scene) error {
	elsewhere := &scene{bench: s.bench, node: spare, namespace: s.namespace}
	if _, err := elsewhere.slice(ctx, s.own("driver"), 1, device("gpu-0", "gpu")); err != nil {
		return err
	}
	if err := s.withoutType(ctx); err != nil {
		return err
	}
	if err := s.pod(ctx, "legacy", s.ownResource(), 1, anywhere); err != nil {
		return err
	}
	if err := s.schedulerFails(ctx, "legacy", filterFails+s.own("class"), celError); err != nil {
		return err
	}
	// The device there is a good one: without the other node in question it serves.
	return s.fitsOn(ctx, spare, 1)
}

func celFailsForPlugin(ctx context.Context, s *scene) error {
	if err := s.advertises(ctx, spare, 1); err != nil {
		return err
	}
	if err := s.withoutType(ctx); err != nil {
		return err
	}
	if err := s.pod(ctx, "legacy", s.ownResource(), 1, anywhere); err != nil {
		return err
	}
	if err := s.schedulerFails(ctx, "legacy", filterFails+s.own("class"), celError); err != nil {
		return err
	}
	return s.fitsOn(ctx, spare, 1)
}
