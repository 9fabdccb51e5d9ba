package main

import (
	"context"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"

	"github.com/dramigrate/dramigrate/test/cluster/e2e"
)

const (
	// wipingDelay is how long a kubelet as released keeps the slices of a driver that left.
	wipingDelay = 30 * time.Second
	// wipingBound is how long that may take with everything around it.
	wipingBound = wipingDelay + 30*time.Second
	// notRegistered is what a kubelet answers for claims of a driver that left.
	notRegistered = "DRA driver gpu.nvidia.com is not registered"
)

func sliceClaims() []claim {
	const source = "pkg/kubelet/cm/dra/manager.go, defaultWipingDelay; pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go"
	return []claim{
		{
			id: "K7a", place: switched, holds: ">=1.34", source: source, texts: []string{notRegistered},
			says:  "The kubelet removes the ResourceSlices of a driver 30 s after it is gone; until then the scheduler binds pods to its devices, and they wait with FailedPrepareDynamicResources",
			prove: wipedAfterDelay,
		},
		{
			id: "K7b", place: switched, holds: ">=1.34", source: source,
			says:  "At its start a kubelet removes all ResourceSlices of its node, of drivers that it never knew too; a driver that runs publishes its own again",
			prove: wipedAtStart,
		},
	}
}

// deletions counts the slices of the scene's node that are deleted from now on, by
// driver, until want of them are gone.
func (s *scene) deletions(ctx context.Context, ready chan<- struct{}, want map[string]bool) error {
	list := cache.NewListWatchFromClient(s.Client().ResourceV1().RESTClient(), "resourceslices", metav1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", s.node))
	left := len(want)
	_, err := toolswatch.UntilWithSync(ctx, list, &resourceapi.ResourceSlice{}, func(cache.Store) (bool, error) {
		close(ready)
		return false, nil
	}, func(e watch.Event) (bool, error) {
		slice, ok := e.Object.(*resourceapi.ResourceSlice)
		if ok && e.Type == watch.Deleted && want[slice.Spec.Driver] {
			want[slice.Spec.Driver] = false
			left--
		}
		return left == 0, nil
	})
	if err != nil {
		return fmt.Errorf("want the slices on node/%s to be deleted; not deleted: %v: %w", s.node, want, err)
	}
	return nil
}

// whileWatching does something and waits until the slices of the drivers have been
// deleted from the node.
func (s *scene) whileWatching(ctx context.Context, do func() error, drivers ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	want := map[string]bool{}
	for _, d := range drivers {
		want[d] = true
	}
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- s.deletions(ctx, ready, want) }()
	select {
	case <-ready:
	case err := <-done:
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return <-done
}

func wipedAfterDelay(ctx context.Context, s *scene) error {
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	var asked, left time.Time
	err := s.whileWatching(ctx, func() error {
		asked = time.Now()
		if err := s.driverOff(ctx, s.node); err != nil {
			return err
		}
		left = time.Now()
		if err := s.pod(ctx, "late", gpu, 1); err != nil {
			return err
		}
		is, err := s.bound(ctx, "late")
		if err != nil {
			return err
		}
		if is.claim == "" {
			return fmt.Errorf("want the pod bound to the devices of the driver that left; got: %s", is)
		}
		return s.event(ctx, "late", "FailedPrepareDynamicResources", notRegistered)
	}, e2e.Driver)
	if err != nil {
		return err
	}
	now := time.Now()
	s.saw("slices deleted %s after the node's label was changed and %s after the driver's pod was gone",
		now.Sub(asked).Round(100*time.Millisecond), now.Sub(left).Round(100*time.Millisecond))
	// The kubelet counts from the end of the connection, which lies between the two.
	if now.Sub(asked) < wipingDelay || now.Sub(left) > wipingBound {
		return fmt.Errorf("want the slices deleted %s after the driver left; it left between %s and %s before", wipingDelay, now.Sub(asked), now.Sub(left))
	}
	is, err := s.look(ctx, "late")
	if err != nil {
		return err
	}
	s.saw("the pod is then %s", is)
	return s.remove(ctx, "late")
}

func wipedAtStart(ctx context.Context, s *scene) error {
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	if _, err := s.slice(ctx, s.own("driver"), 1, device("gpu-0", "gpu")); err != nil {
		return err
	}
	restarted := time.Now()
	err := s.whileWatching(ctx, func() error { return s.RestartKubelet(ctx, s.node) }, e2e.Driver, s.own("driver"))
	if err != nil {
		return err
	}
	s.saw("all slices deleted %s after the restart", time.Since(restarted).Round(100*time.Millisecond))
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	s.saw("the driver's slices are back after %s", time.Since(restarted).Round(100*time.Millisecond))
	return nil
}
