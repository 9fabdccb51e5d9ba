package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	createContainerConfigError = "CreateContainerConfigError"
	// forgotten is what a kubelet answers that remembers the devices of a plugin's pod
	// and no plugin.
	forgotten = "endpoint not found in cache for a registered resource: nvidia.com/gpu"
)

func staleClaims() []claim {
	const source = "pkg/kubelet/cm/devicemanager/manager.go, GetDeviceRunContainerOptions, callPreStartContainerIfNeeded, UpdateAllocatedDevices; mended in 1.38 by kubernetes/kubernetes#141426"
	return []claim{
		{
			id: "K3.3a", place: stale, holds: ">=1.34 <1.38", source: source, texts: []string{createContainerConfigError, forgotten},
			says:  "On a node on which a plugin-backed pod ran, after the kubelet's grace for the plugin (5 min as released, 20 s in the kubelet of this proof) the containers of pods that DRA serves fail with CreateContainerConfigError until one PodResources List call, and then run",
			prove: func(ctx context.Context, s *scene) error { return retrying(ctx, s, curedByList) },
		},
		{
			id: "K3.3b", place: stale, holds: ">=1.34 <1.38", source: source, texts: []string{createContainerConfigError, forgotten},
			says:  "A restart of the kubelet does not cure this CreateContainerConfigError",
			prove: func(ctx context.Context, s *scene) error { return retrying(ctx, s, notCuredByRestart) },
		},
		{
			id: "K3.3c", place: switched, holds: ">=1.34", source: source,
			says:  "Within that grace the containers of such pods run",
			prove: runsWithinGrace,
		},
	}
}

// succeed moves the node from the plugin to the driver after a pod of the plugin has run.
func (s *scene) succeed(ctx context.Context) error {
	if err := s.driverOff(ctx, s.node); err != nil {
		return err
	}
	if err := s.pluginOn(ctx, s.node); err != nil {
		return err
	}
	if err := s.pod(ctx, "old", gpu, 1); err != nil {
		return err
	}
	if _, err := s.runsByPlugin(ctx, "old"); err != nil {
		return err
	}
	if err := s.remove(ctx, "old"); err != nil {
		return err
	}
	if err := s.pluginOff(ctx, s.node); err != nil {
		return err
	}
	return s.driverOn(ctx, s.node)
}

// outliveGrace does the same and waits until the kubelet has forgotten the plugin.
func (s *scene) outliveGrace(ctx context.Context) error {
	if err := s.succeed(ctx); err != nil {
		return err
	}
	return s.forgets(ctx)
}

func runsWithinGrace(ctx context.Context, s *scene) error {
	if err := s.succeed(ctx); err != nil {
		return err
	}
	if err := s.pod(ctx, "within", gpu, 1); err != nil {
		return err
	}
	if _, err := s.runsByDRA(ctx, "within"); err != nil {
		return err
	}
	// So that the next claim on this node finds it well, should the grace end before.
	if err := s.ListPodResources(ctx, s.node); err != nil {
		return err
	}
	return s.remove(ctx, "within")
}

// refused makes a pod and wants its container not to be created for the forgotten plugin.
func (s *scene) refused(ctx context.Context, name string) error {
	if err := s.pod(ctx, name, gpu, 1); err != nil {
		return err
	}
	is, err := s.becomes(ctx, name, createContainerConfigError+": …"+forgotten+"…",
		func(is podIs) bool { return is.says(waiting, createContainerConfigError, forgotten) })
	if err != nil {
		return err
	}
	s.saw("container waiting %s: %s", is.reason, is.message)
	return s.event(ctx, name, "Failed", forgotten)
}

func curedByList(ctx context.Context, s *scene) error {
	if err := s.outliveGrace(ctx); err != nil {
		return err
	}
	if err := s.refused(ctx, "after"); err != nil {
		return err
	}
	called := time.Now()
	if err := s.ListPodResources(ctx, s.node); err != nil {
		return err
	}
	if _, err := s.runsByDRA(ctx, "after"); err != nil {
		return err
	}
	s.saw("runs %s after the call", time.Since(called).Round(100*time.Millisecond))
	return s.remove(ctx, "after")
}

func notCuredByRestart(ctx context.Context, s *scene) error {
	if err := s.outliveGrace(ctx); err != nil {
		return err
	}
	if err := s.restartKubelet(ctx); err != nil {
		return err
	}
	// A restart removes the slices; the driver publishes them again.
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	if err := s.refused(ctx, "after"); err != nil {
		return err
	}
	// So that the next claim on this node finds it well.
	if err := s.ListPodResources(ctx, s.node); err != nil {
		return err
	}
	return s.remove(ctx, "after")
}

// heartbeat is when the kubelet last reported that the node is ready.
func (s *scene) heartbeat(ctx context.Context) (time.Time, error) {
	n, err := s.Client().CoreV1().Nodes().Get(ctx, s.node, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, err
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c.LastHeartbeatTime.Time, nil
		}
	}
	return time.Time{}, fmt.Errorf("node/%s is not ready", s.node)
}
