package main

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
)

func nameClaims() []claim {
	return []claim{{
		id: "K1.3a", place: both, holds: ">=1.35", source: mapping,
		says:  "A pod that asks for " + resourceapi.ResourceDeviceClassPrefix + "<class> is served by DRA, by a class without an extendedResourceName too, and on a node whose plugin advertises nvidia.com/gpu",
		prove: implicitName,
	}}
}

func implicitName(ctx context.Context, s *scene) error {
	if err := s.advertiseBoth(ctx); err != nil {
		return err
	}
	class := s.own("class")
	if _, err := s.class(ctx, class, ""); err != nil {
		return err
	}
	if err := s.pod(ctx, "implicit", resourceapi.ResourceDeviceClassPrefix+class, 1); err != nil {
		return err
	}
	is, err := s.runsByDRA(ctx, "implicit")
	if err != nil {
		return err
	}
	claims, err := s.claims(ctx)
	if err != nil {
		return err
	}
	if len(claims) != 1 || classIn(&claims[0]) != class || claims[0].Name != is.claim {
		return fmt.Errorf("want one claim, of class %s; got %d claims", class, len(claims))
	}
	return s.remove(ctx, "implicit")
}
