package main

import (
	"context"
	"errors"
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
			prove: func(ctx context.Context, s *scene) error { return retrying(ctx, s, keysStay) },
		},
		{
			id: "K3.1b", place: forgetful, holds: ">=1.34", source: source,
			says:  "The keys stay, with \"0\", over a restart of the kubelet",
			prove: func(ctx context.Context, s *scene) error { return retrying(ctx, s, keysOutliveRestart) },
		},
		{
			id: "K3.1c", place: forgetful, holds: ">=1.34", source: source,
			says:  "If the kubelet's status updates fail while its grace for the plugin ends, capacity and allocatable come back with the number of the plugin that is gone, and stay; a pod that asks for nvidia.com/gpu is bound there and starts without a device",
			prove: func(ctx context.Context, s *scene) error { return retrying(ctx, s, comesBack) },
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

// errCameBack says that the node counts devices again that nobody offers (K3.1c).
var errCameBack = errors.New("want capacity 0; got the plugin's number again, in capacity and allocatable, without the plugin: a status update of the kubelet was lost")

// forgets waits until the kubelet has forgotten the plugin that left.
func (s *scene) forgets(ctx context.Context) error {
	all, isBack := fmt.Sprint(s.gpus[s.node]), false
	err := eventually(ctx, patience, func() string {
		err := s.are(ctx, "0", "0")
		if err == nil {
			return ""
		}
		if isBack = s.are(ctx, all, all) == nil; isBack {
			return ""
		}
		return err.Error()
	})
	if isBack {
		return errCameBack
	}
	return err
}

// retrying proves again, at most twice, what a busy machine has spoilt: the kubelet has
// lost a status update, or the proof has missed the kubelet's grace.
func retrying(ctx context.Context, s *scene, prove func(context.Context, *scene) error) error {
	err := prove(ctx, s)
	for range 2 {
		if !errors.Is(err, errCameBack) && !errors.Is(err, errTooSlow) {
			return err
		}
		s.saw("tried again: %s", err)
		err = prove(ctx, s)
	}
	return err
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
	if err := s.forgets(ctx); err != nil {
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
	if err := s.forgets(ctx); err != nil {
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
