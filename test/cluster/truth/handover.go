package main

import (
	"context"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mapping is where scheduler and quota remember which class carries a name.
const mapping = "k8s.io/dynamic-resource-allocation v0.37.2 deviceclass/extendedresourcecache/extendedresourcecache.go"

// mappingWrongly is where it is reported and mended.
const mappingWrongly = mapping + "; kubernetes/kubernetes#141103, mended in 1.38 by #141110"

func handoverClaims() []claim {
	lost := []string{"Insufficient "}
	return []claim{
		{
			id: "K1.4a", place: served, holds: ">=1.35 <1.38", texts: lost, source: mappingWrongly,
			says: "Of two classes with one extendedResourceName, deleting the older, which lost, leaves the name without a class",
			prove: func(ctx context.Context, s *scene) error {
				return s.handover(ctx, func(older, _ string) error { return s.deleteClass(ctx, older) })
			},
		},
		{
			id: "K1.4b", place: served, holds: ">=1.35 <1.38", texts: lost, source: mappingWrongly,
			says: "Of two classes with one extendedResourceName, deleting the newer, which won, does not put the older in its place",
			prove: func(ctx context.Context, s *scene) error {
				return s.handover(ctx, func(_, newer string) error { return s.deleteClass(ctx, newer) })
			},
		},
		{
			id: "K1.4c", place: served, holds: ">=1.35 <1.38", texts: lost, source: mappingWrongly + "; KEP-5004 recommends this handover",
			says: "Of two classes with one extendedResourceName, clearing the field of the older leaves the name without a class",
			prove: func(ctx context.Context, s *scene) error {
				return s.handover(ctx, func(older, _ string) error {
					return s.patchClass(ctx, older, `{"spec":{"extendedResourceName":null}}`)
				})
			},
		},
		{
			id: "K1.4d", place: served, holds: ">=1.35 <1.38", texts: lost, source: mappingWrongly,
			says: "After such a loss any update of the class that is left, an annotation for instance, brings the name back for new pods",
			prove: func(ctx context.Context, s *scene) error {
				err := s.handover(ctx, func(older, _ string) error { return s.deleteClass(ctx, older) })
				if err != nil {
					return err
				}
				if err := s.patchClass(ctx, s.own("newer"), `{"metadata":{"annotations":{"touched":"true"}}}`); err != nil {
					return err
				}
				_, err = s.trying(ctx, "served by DRA", podIs.byDRA)
				return err
			},
		},
		{
			id: "K1.4e", place: served, holds: ">=1.35",
			source: mapping + "; k8s.io/api v0.37.2 resource/v1/types.go, DeviceClassSpec.ExtendedResourceName",
			says:   "Of two classes with one extendedResourceName the newer serves it",
			prove: func(ctx context.Context, s *scene) error {
				if err := s.twoClasses(ctx); err != nil {
					return err
				}
				return eventually(ctx, patience, func() string {
					class, err := s.servingClass(ctx)
					if err != nil {
						return err.Error()
					}
					if class != s.own("newer") {
						return fmt.Sprintf("want class %s to serve; got %s", s.own("newer"), class)
					}
					return ""
				})
			},
		},
	}
}

// twoClasses makes two classes with the claim's own resource name, and waits until
// pods are served by the newer of them.
func (s *scene) twoClasses(ctx context.Context) error {
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	older, err := s.class(ctx, s.own("older"), s.ownResource())
	if err != nil {
		return err
	}
	// Times of creation are in whole seconds; within one the name decides.
	timer := time.NewTimer(time.Until(older.CreationTimestamp.Add(1100 * time.Millisecond)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	newer, err := s.class(ctx, s.own("newer"), s.ownResource())
	if err != nil {
		return err
	}
	if !older.CreationTimestamp.Before(&newer.CreationTimestamp) {
		return fmt.Errorf("class %s is not older than class %s", older.Name, newer.Name)
	}
	return nil
}

// handover makes two classes, does something to one, and wants the name to be lost.
func (s *scene) handover(ctx context.Context, change func(older, newer string) error) error {
	if err := s.twoClasses(ctx); err != nil {
		return err
	}
	if _, err := s.trying(ctx, "served by DRA", podIs.byDRA); err != nil {
		return err
	}
	if err := change(s.own("older"), s.own("newer")); err != nil {
		return err
	}
	text := insufficient(s.ownResource())
	is, err := s.trying(ctx, "pending, …"+text+"…", func(is podIs) bool {
		return is.says(unschedulable, "Unschedulable", text)
	})
	if err == nil {
		s.saw("PodScheduled=False %s: %s", is.reason, is.message)
	}
	return err
}

// trying creates pods that ask for the claim's own resource, one after the other,
// until one ends as wanted: a pod made right after a change of a class may be
// scheduled before the scheduler has heard of the change.
func (s *scene) trying(ctx context.Context, want string, isSo func(podIs) bool) (podIs, error) {
	var is podIs
	const name = "try"
	err := eventually(ctx, patience, func() string {
		err := s.remove(ctx, name)
		if err == nil {
			err = s.pod(ctx, name, s.ownResource(), 1)
		}
		if err == nil {
			is, err = s.becomes(ctx, name, "running with GPUs or unschedulable", func(is podIs) bool {
				return is.state == running && len(is.gpus) > 0 || is.state == unschedulable
			})
		}
		if err != nil {
			return err.Error()
		}
		if !isSo(is) {
			return fmt.Sprintf("want a new pod %s; got: %s", want, is)
		}
		return ""
	})
	return is, err
}

// servingClass is the class that is in the claim generated for a pod that asks for the
// claim's own resource.
func (s *scene) servingClass(ctx context.Context) (string, error) {
	is, err := s.trying(ctx, "served by DRA", podIs.byDRA)
	if err != nil {
		return "", err
	}
	c, err := s.Client().ResourceV1().ResourceClaims(s.namespace).Get(ctx, is.claim, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return classIn(c), nil
}

// classIn is the class of a claim's first request.
func classIn(c *resourceapi.ResourceClaim) string {
	if len(c.Spec.Devices.Requests) == 0 || c.Spec.Devices.Requests[0].Exactly == nil {
		return ""
	}
	return c.Spec.Devices.Requests[0].Exactly.DeviceClassName
}

func (s *scene) deleteClass(ctx context.Context, name string) error {
	return s.Client().ResourceV1().DeviceClasses().Delete(ctx, name, metav1.DeleteOptions{})
}

func (s *scene) patchClass(ctx context.Context, name, patch string) error {
	_, err := s.Client().ResourceV1().DeviceClasses().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
