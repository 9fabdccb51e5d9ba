package main

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outOf is the reason of a pod that a kubelet refuses for want of the resource.
const outOf = "OutOfnvidia.com/gpu"

func oldKubeletClaims() []claim {
	const source = "k8s.io/kubernetes v1.35.4 pkg/kubelet/lifecycle/predicate.go, removeMissingExtendedResources; pkg/features/kube_features.go, DRAExtendedResource; KEP-5004, version skew"
	return []claim{
		{
			id: "K3.4a", place: old, holds: ">=1.36", source: source,
			says:  "A " + oldKubelet + " kubelet whose node has no key nvidia.com/gpu admits a pod that DRA serves and starts it without any device, although a claim was made for it",
			prove: oldWithoutKey,
		},
		{
			id: "K3.4b", place: old, holds: ">=1.36", source: source, texts: []string{outOf},
			says:  "A " + oldKubelet + " kubelet whose node has the key with \"0\" refuses it: Failed, " + outOf,
			prove: oldWithKey,
		},
	}
}

func oldWithoutKey(ctx context.Context, s *scene) error {
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	if err := s.are(ctx, "absent", "absent"); err != nil {
		return err
	}
	if err := s.pod(ctx, "cheated", gpu, 1); err != nil {
		return err
	}
	// The workload ends with an error when it sees no GPU.
	is, err := s.becomes(ctx, "cheated", "started with a generated claim and without a GPU", func(is podIs) bool {
		return is.state == failed && is.reason == "" && is.claim != "" && len(is.gpus) == 0
	})
	if err != nil {
		return err
	}
	log, err := s.Client().CoreV1().Pods(s.namespace).GetLogs("cheated", nil).DoRaw(ctx)
	if err != nil {
		return err
	}
	s.saw("the container ran and printed %q", log)
	if string(log) != "No devices were found\n" {
		return fmt.Errorf("want the container to find no devices; it printed %q (%s)", log, is)
	}
	return s.remove(ctx, "cheated")
}

func oldWithKey(ctx context.Context, s *scene) error {
	if err := s.pluginOn(ctx, s.node); err != nil {
		return err
	}
	if err := s.pluginOff(ctx, s.node); err != nil {
		return err
	}
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	if err := s.pod(ctx, "refused", gpu, 1); err != nil {
		return err
	}
	is, err := s.becomes(ctx, "refused", "failed, "+outOf, func(is podIs) bool { return is.state == failed && is.reason == outOf })
	if err != nil {
		return err
	}
	s.saw("phase Failed, reason %s: %s", is.reason, is.message)
	return s.remove(ctx, "refused")
}

// allocated are the devices of the namespace's claims.
func (s *scene) allocated(ctx context.Context) ([]resourceapi.DeviceRequestAllocationResult, error) {
	list, err := s.Client().ResourceV1().ResourceClaims(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []resourceapi.DeviceRequestAllocationResult
	for _, c := range list.Items {
		if c.Status.Allocation != nil {
			out = append(out, c.Status.Allocation.Devices.Results...)
		}
	}
	return out, nil
}
