package main

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const taintKey = "truth.dramigrate.dev/closed"

func taintClaims() []claim {
	return []claim{
		{
			id: "K9a", place: served, holds: ">=1.36", source: allocates + "; KEP-5055", texts: []string{cannotAllocate},
			says:  "A device taint in a ResourceSlice keeps the device from a pod that asks by the extended resource name, with \"cannot allocate all claims\"; an explicit claim that tolerates the taint gets it",
			prove: taintedInSlice,
		},
		{
			id: "K9b", place: served, holds: ">=1.37", source: "k8s.io/api v0.37.2 resource/v1/types.go, DeviceTaintRule", texts: []string{cannotAllocate},
			says:  "A DeviceTaintRule keeps a device from a pod that asks by the extended resource name, until the rule is deleted",
			prove: taintedByRule,
		},
	}
}

// closedDevice publishes one device for the claim's own driver, class and resource.
func (s *scene) closedDevice(ctx context.Context, taints ...resourceapi.DeviceTaint) error {
	d := device("gpu-0", "gpu")
	d.Taints = taints
	if _, err := s.slice(ctx, s.own("driver"), 1, d); err != nil {
		return err
	}
	_, err := s.classOf(ctx, s.own("class"), s.ownResource(), isOf(s.own("driver")))
	return err
}

func taintedInSlice(ctx context.Context, s *scene) error {
	if err := s.closedDevice(ctx, resourceapi.DeviceTaint{Key: taintKey, Effect: resourceapi.DeviceTaintEffectNoSchedule}); err != nil {
		return err
	}
	if err := s.pod(ctx, "legacy", s.ownResource(), 1); err != nil {
		return err
	}
	if err := s.pending(ctx, "legacy", "1 "+cannotAllocate); err != nil {
		return err
	}
	tolerates := resourceapi.DeviceToleration{Key: taintKey, Operator: resourceapi.DeviceTolerationOpExists}
	if err := s.claim(ctx, "explicit", s.own("class"), 1, tolerates); err != nil {
		return err
	}
	if err := s.pod(ctx, "tolerates", "", 0, withClaim("explicit")); err != nil {
		return err
	}
	if _, err := s.bound(ctx, "tolerates"); err != nil {
		return err
	}
	devices, err := s.allocated(ctx)
	if err == nil && (len(devices) != 1 || devices[0].Device != "gpu-0") {
		err = fmt.Errorf("want gpu-0 allocated to the claim that tolerates the taint; got %v", devices)
	}
	return err
}

func taintedByRule(ctx context.Context, s *scene) error {
	driver := s.own("driver")
	rules := s.Client().ResourceV1().DeviceTaintRules()
	_, err := rules.Create(ctx, &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: s.own("rule")},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: &driver},
			Taint:          resourceapi.DeviceTaint{Key: taintKey, Effect: resourceapi.DeviceTaintEffectNoSchedule},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := s.closedDevice(ctx); err != nil {
		return err
	}
	if err := s.pod(ctx, "legacy", s.ownResource(), 1); err != nil {
		return err
	}
	if err := s.pending(ctx, "legacy", "1 "+cannotAllocate); err != nil {
		return err
	}
	if err := rules.Delete(ctx, s.own("rule"), metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err = s.bound(ctx, "legacy")
	return err
}
