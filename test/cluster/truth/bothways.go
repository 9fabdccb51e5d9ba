package main

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// nilMappings is why such a pod is not bound.
const nilMappings = "nil or empty request mappings, no update of pod"

func bothClaims() []claim {
	const source = "pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, patchPodExtendedResourceClaimStatus; no upstream issue is known"
	return []claim{
		{
			id: "K1.6a", place: both, holds: ">=1.34", isUnmapped: true, source: source,
			says:  "While no DeviceClass carries the name, a pod with an explicit ResourceClaim and nvidia.com/gpu binds and runs on a node of the plugin",
			prove: combinedBinds,
		},
		{
			id: "K1.6b", place: both, holds: ">=1.35", source: source, texts: []string{nilMappings},
			says:  "Once a DeviceClass carries the name, the same pod is never bound there: the scheduler fails in PreBind, removes the empty claim that it made, and tries again",
			prove: combinedLoops,
		},
	}
}

// combined makes a pod with both on a node with both.
func (s *scene) combined(ctx context.Context) error {
	if err := s.advertiseBoth(ctx); err != nil {
		return err
	}
	if _, err := s.class(ctx, s.own("class"), ""); err != nil {
		return err
	}
	if err := s.claim(ctx, "explicit", s.own("class"), 1); err != nil {
		return err
	}
	return s.pod(ctx, "combined", gpu, 1, withClaim("explicit"))
}

func combinedBinds(ctx context.Context, s *scene) error {
	if err := s.combined(ctx); err != nil {
		return err
	}
	if _, err := s.runsByPlugin(ctx, "combined"); err != nil {
		return err
	}
	return s.remove(ctx, "combined")
}

func combinedLoops(ctx context.Context, s *scene) error {
	seen := make(chan error, 1)
	watching, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	go func() { seen <- s.emptyClaims(watching, 2) }()
	if err := s.combined(ctx); err != nil {
		return err
	}
	if err := s.schedulerFails(ctx, "combined", nilMappings); err != nil {
		return err
	}
	if err := <-seen; err != nil {
		return fmt.Errorf("want the scheduler to make an empty claim and remove it, twice at least: %w", err)
	}
	is, err := s.look(ctx, "combined")
	if err != nil {
		return err
	}
	if is.node != "" {
		return fmt.Errorf("want the pod not bound; got: %s", is)
	}
	return s.remove(ctx, "combined")
}

// emptyClaims waits until claims without a request have come and gone n times.
func (s *scene) emptyClaims(ctx context.Context, n int) error {
	claims := cache.NewListWatchFromClient(s.Client().ResourceV1().RESTClient(), "resourceclaims", s.namespace, fields.Everything())
	_, err := toolswatch.UntilWithSync(ctx, claims, &resourceapi.ResourceClaim{}, nil, func(e watch.Event) (bool, error) {
		c, ok := e.Object.(*resourceapi.ResourceClaim)
		if ok && e.Type == watch.Deleted && metav1.HasAnnotation(c.ObjectMeta, resourceapi.ExtendedResourceClaimAnnotation) &&
			len(c.Spec.Devices.Requests) == 0 {
			n--
		}
		return n == 0, nil
	})
	return err
}
