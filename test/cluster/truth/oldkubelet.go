package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// outOf is the reason of a pod that a kubelet refuses for want of the resource.
	outOf = "OutOfnvidia.com/gpu"
	// unexpectedAdmission and noHealthy are what its device manager says before it comes
	// to that, as long as it remembers a plugin that has left.
	unexpectedAdmission = "UnexpectedAdmissionError"
	noHealthy           = "no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu"
	// releasedGrace is how long a kubelet as released remembers it.
	releasedGrace = 5 * time.Minute
)

func oldKubeletClaims() []claim {
	const source = "k8s.io/kubernetes v1.35.4 pkg/kubelet/lifecycle/predicate.go, removeMissingExtendedResources; " +
		"pkg/kubelet/cm/devicemanager/manager.go, devicesToAllocate; pkg/features/kube_features.go, DRAExtendedResource"
	return []claim{
		{
			id: "K3.4a", place: old, holds: ">=1.36", source: source,
			says:  "A " + oldKubelet + " kubelet whose node has no key nvidia.com/gpu admits a pod that DRA serves and starts it without any device, although a claim was made for it",
			prove: oldWithoutKey,
		},
		{
			id: "K3.4b", place: old, holds: ">=1.36", source: source, texts: []string{unexpectedAdmission, noHealthy},
			says:  "A " + oldKubelet + " kubelet whose node has the key with \"0\" refuses a pod that DRA serves; within its grace of 5 min for the plugin that left: Failed, " + unexpectedAdmission,
			prove: oldWithinGrace,
		},
		{
			id: "K3.4c", place: old, holds: ">=1.36", source: source, texts: []string{outOf},
			says:  "After that grace, with capacity \"0\" too, a " + oldKubelet + " kubelet refuses a pod that DRA serves with Failed, " + outOf,
			prove: oldAfterGrace,
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
	log, err := s.Client().CoreV1().Pods(s.namespace).GetLogs("cheated", &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return err
	}
	s.saw("the container ran and printed %q", log)
	if string(log) != "No devices were found\n" {
		return fmt.Errorf("want the container to find no devices; it printed %q (%s)", log, is)
	}
	return s.remove(ctx, "cheated")
}

func oldWithinGrace(ctx context.Context, s *scene) error {
	if err := s.pluginLeft(ctx); err != nil {
		return err
	}
	return s.rejected(ctx, unexpectedAdmission, noHealthy)
}

func oldAfterGrace(ctx context.Context, s *scene) error {
	_, allocatable, err := s.quantities(ctx, s.node)
	if err != nil {
		return err
	}
	if allocatable != "0" {
		if err := s.pluginLeft(ctx); err != nil {
			return err
		}
	}
	began := time.Now()
	err = eventually(ctx, releasedGrace+patience, func() string {
		if err := s.are(ctx, "0", "0"); err != nil {
			return err.Error()
		}
		return ""
	})
	if err != nil {
		return err
	}
	s.saw("capacity 0 after %s more", time.Since(began).Round(time.Second))
	return s.rejected(ctx, outOf, "requested: 1, used: 0, capacity: 0")
}

// pluginLeft has the plugin come to the node and leave it.
func (s *scene) pluginLeft(ctx context.Context) error {
	if err := s.pluginOn(ctx, s.node); err != nil {
		return err
	}
	return s.pluginOff(ctx, s.node)
}

// rejected makes a pod and wants the kubelet to refuse it.
func (s *scene) rejected(ctx context.Context, reason, text string) error {
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	if err := s.pod(ctx, "refused", gpu, 1); err != nil {
		return err
	}
	is, err := s.becomes(ctx, "refused", fmt.Sprintf("failed, %s: …%s…", reason, text),
		func(is podIs) bool { return is.says(failed, reason, text) })
	if err != nil {
		return err
	}
	s.saw("phase Failed, reason %s: %s", is.reason, is.message)
	if is.claim == "" {
		return fmt.Errorf("want it bound with a generated claim; got: %s", is)
	}
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
