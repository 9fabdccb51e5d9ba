package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dramigrate/dramigrate/test/cluster/internal/build"
)

func pluginGoneClaims() []claim {
	const source = "pkg/kubelet/cm/devicemanager/manager.go, GetCapacity; types.go, endpointStopGracePeriod; pkg/kubelet/nodestatus/setters.go"
	return []claim{
		{
			id: "K3.1a", place: forgetful, holds: ">=1.34", source: source,
			says:  "When the plugin's pod is gone allocatable nvidia.com/gpu is \"0\" and capacity is as before; after the kubelet's grace (5 min as released, 20 s in the kubelet of this proof) capacity is \"0\" too, and both keys stay",
			prove: keysStay,
		},
		{
			id: "K3.1b", place: forgetful, holds: ">=1.34", source: source,
			says:  "The keys stay, with \"0\", over a restart of the kubelet",
			prove: keysOutliveRestart,
		},
	}
}

// are wants a node's quantities.
func (s *scene) are(ctx context.Context, capacity, allocatable string) error {
	c, a, err := s.quantities(ctx, s.node)
	if err == nil && (c != capacity || a != allocatable) {
		err = fmt.Errorf("want capacity %s and allocatable %s of %s; got %s and %s", capacity, allocatable, gpu, c, a)
	}
	return err
}

// become waits for a node's quantities.
func (s *scene) become(ctx context.Context, capacity, allocatable string) error {
	return eventually(ctx, patience, func() string {
		if err := s.are(ctx, capacity, allocatable); err != nil {
			return err.Error()
		}
		return ""
	})
}

func keysStay(ctx context.Context, s *scene) error {
	if err := s.pluginOn(ctx, s.node); err != nil {
		return err
	}
	left := time.Now()
	if err := s.pluginOff(ctx, s.node); err != nil {
		return err
	}
	if err := s.are(ctx, fmt.Sprint(s.gpus[s.node]), "0"); err != nil {
		return err
	}
	s.saw("allocatable 0 after %s", time.Since(left).Round(100*time.Millisecond))
	if err := s.become(ctx, "0", "0"); err != nil {
		return err
	}
	took := time.Since(left)
	s.saw("capacity 0 after %s", took.Round(100*time.Millisecond))
	if took < build.QuickEndpointGrace {
		return fmt.Errorf("want capacity to stay for the grace of %s; got 0 after %s", build.QuickEndpointGrace, took)
	}
	return nil
}

func keysOutliveRestart(ctx context.Context, s *scene) error {
	if err := s.pluginLeft(ctx); err != nil {
		return err
	}
	if err := s.become(ctx, "0", "0"); err != nil {
		return err
	}
	if err := s.restartKubelet(ctx); err != nil {
		return err
	}
	return s.are(ctx, "0", "0")
}

// restartKubelet returns when the new kubelet has reported the node's status.
func (s *scene) restartKubelet(ctx context.Context) error {
	before, err := s.heartbeat(ctx)
	if err != nil {
		return err
	}
	if err := s.StopKubelet(ctx, s.node); err != nil {
		return err
	}
	stopped := time.Now()
	if err := s.StartKubelet(ctx, s.node); err != nil {
		return err
	}
	return eventually(ctx, patience, func() string {
		now, err := s.heartbeat(ctx)
		if err != nil {
			return err.Error()
		}
		// Times are in whole seconds.
		if !now.After(before) || !now.After(stopped) {
			return fmt.Sprintf("node/%s: the new kubelet has reported nothing yet; last report at %s", s.node, now)
		}
		return ""
	})
}
