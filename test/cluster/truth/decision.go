package main

import (
	"context"
	"fmt"

	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// decides is where the scheduler chooses between plugin and driver.
const decides = "pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA; " +
	"pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, filterExtendedResources"

// insufficient is what the scheduler says of a node without enough of a resource.
func insufficient(resource string) string { return "Insufficient " + resource }

func decisionClaims() []claim {
	return []claim{
		{
			id: "K1.1a", place: both, holds: ">=1.35",
			says:   "A node with nvidia.com/gpu allocatable above 0 serves by the plugin and without a claim, although the DeviceClass maps the name and the node's GPUs are in ResourceSlices",
			source: decides,
			prove:  pluginFirst,
		},
		{
			id: "K1.1b", place: both, holds: ">=1.34",
			says:   "Where both advertise, an explicit ResourceClaim and a plugin-backed pod are admitted on one and the same GPU",
			source: decides + "; KEP-5004, non-goals",
			prove:  doubleAllocation,
		},
		{
			id: "K1.1c", place: both, holds: ">=1.35", texts: []string{insufficient(gpu)},
			says:   "Where both advertise and the plugin's devices are taken, a pod stays pending: it does not fall back to the driver's devices",
			source: decides,
			prove:  noFallback,
		},
		{
			id: "K1.1d", place: served, holds: ">=1.34", isUnmapped: true, texts: []string{insufficient(gpu)},
			says:   "While no DeviceClass carries the name, a node with slices and without the plugin does not serve it",
			source: decides,
			prove: func(ctx context.Context, s *scene) error {
				if err := s.driverOn(ctx, s.node); err != nil {
					return err
				}
				if err := s.pod(ctx, "legacy", gpu, 1); err != nil {
					return err
				}
				return s.pending(ctx, "legacy", insufficient(gpu))
			},
		},
		{
			id: "K1.2a", place: switched, holds: ">=1.34",
			says:   "A node whose allocatable never had the key serves by DRA",
			source: decides,
			prove: func(ctx context.Context, s *scene) error {
				return s.servedByDRA(ctx, "absent")
			},
		},
		{
			id: "K1.2b", place: switched, holds: ">=1.35",
			says:   "A node whose allocatable is \"0\" serves by DRA",
			source: decides + "; kubernetes/kubernetes#133784",
			prove: func(ctx context.Context, s *scene) error {
				if err := s.pluginLeft(ctx); err != nil {
					return err
				}
				return s.servedByDRA(ctx, "0")
			},
		},
	}
}

func pluginFirst(ctx context.Context, s *scene) error {
	if err := s.advertiseBoth(ctx); err != nil {
		return err
	}
	if err := s.pod(ctx, "legacy", gpu, 1); err != nil {
		return err
	}
	if _, err := s.runsByPlugin(ctx, "legacy"); err != nil {
		return err
	}
	claims, err := s.claims(ctx)
	if err != nil {
		return err
	}
	if len(claims) > 0 {
		return fmt.Errorf("want no ResourceClaim; got %s", claims[0].Name)
	}
	return s.remove(ctx, "legacy")
}

// advertiseBoth has plugin and driver offer the GPUs of the node.
func (s *scene) advertiseBoth(ctx context.Context) error {
	if err := s.pluginOn(ctx, s.node); err != nil {
		return err
	}
	return s.driverOn(ctx, s.node)
}

func doubleAllocation(ctx context.Context, s *scene) error {
	if err := s.advertiseBoth(ctx); err != nil {
		return err
	}
	all := s.gpus[s.node]
	if err := s.claim(ctx, "all", manifests.DeviceClass().Name, int64(all)); err != nil {
		return err
	}
	if err := s.pod(ctx, "explicit", "", 0, withClaim("all")); err != nil {
		return err
	}
	explicit, err := s.becomes(ctx, "explicit", fmt.Sprintf("running with %d GPUs", all),
		func(is podIs) bool { return is.state == running && len(is.gpus) == all })
	if err != nil {
		return err
	}
	if err := s.pod(ctx, "legacy", gpu, 1); err != nil {
		return err
	}
	legacy, err := s.runsByPlugin(ctx, "legacy")
	if err != nil {
		return err
	}
	twice := same(legacy, explicit)
	if len(twice) != 1 {
		return fmt.Errorf("want one GPU in both pods; got %q in one and %q in the other", explicit.gpus, legacy.gpus)
	}
	s.saw("two running containers see %s", twice[0])
	if err := s.remove(ctx, "legacy"); err != nil {
		return err
	}
	return s.remove(ctx, "explicit")
}

func noFallback(ctx context.Context, s *scene) error {
	if err := s.advertiseBoth(ctx); err != nil {
		return err
	}
	if err := s.pod(ctx, "all", gpu, s.gpus[s.node]); err != nil {
		return err
	}
	if _, err := s.runsByPlugin(ctx, "all"); err != nil {
		return err
	}
	if err := s.pod(ctx, "one", gpu, 1); err != nil {
		return err
	}
	if err := s.pending(ctx, "one", "1 "+insufficient(gpu)); err != nil {
		return err
	}
	if err := s.remove(ctx, "one"); err != nil {
		return err
	}
	return s.remove(ctx, "all")
}

// servedByDRA wants the node's allocatable to be as given and a pod to be served by
// the driver.
func (s *scene) servedByDRA(ctx context.Context, want string) error {
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	_, allocatable, err := s.quantities(ctx, s.node)
	if err != nil {
		return err
	}
	if allocatable != want {
		return fmt.Errorf("want allocatable %s %s; got %s", gpu, want, allocatable)
	}
	if err := s.pod(ctx, "legacy", gpu, 1); err != nil {
		return err
	}
	if _, err := s.runsByDRA(ctx, "legacy"); err != nil {
		return err
	}
	return s.remove(ctx, "legacy")
}
