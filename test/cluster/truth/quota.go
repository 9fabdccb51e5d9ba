package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

const (
	// claimCount is the quota of claims of every kind.
	claimCount = "count/resourceclaims.resource.k8s.io"
	// deviceCount ends the quota of a class's devices.
	deviceCount = ".deviceclass.resource.k8s.io/devices"
	// exceeded is why the scheduler's create of a claim is refused.
	exceeded = "is forbidden: exceeded quota: "
)

func quotaClaims() []claim {
	const source = "pkg/quota/v1/evaluator/core/resource_claims.go, pods.go"
	class := manifests.DeviceClass().Name + deviceCount
	return []claim{
		{
			id: "K5.1a", place: served, holds: ">=1.34", source: source, texts: []string{exceeded},
			says: "A quota of " + claimCount + " that is used up admits the pod and refuses the claim that the scheduler makes for it: the pod stays pending",
			prove: func(ctx context.Context, s *scene) error {
				return s.refusesClaim(ctx, claimCount)
			},
		},
		{
			id: "K5.1b", place: served, holds: ">=1.34", source: source, texts: []string{exceeded},
			says: "A quota of <class>" + deviceCount + " that is used up does the same",
			prove: func(ctx context.Context, s *scene) error {
				return s.refusesClaim(ctx, class)
			},
		},
		{
			id: "K5.1c", place: served, holds: ">=1.35", source: source,
			says:  "A served pod uses one of each of these quotas, and its GPU once of requests.nvidia.com/gpu, not twice",
			prove: countsOnce,
		},
		{
			id: "K5.1d", place: served, holds: ">=1.35", source: source, texts: []string{exceeded},
			says:  "An explicit claim counts against requests.<name> from the moment at which its class carries the name, and not before",
			prove: explicitCounts,
		},
	}
}

// quota makes a ResourceQuota and returns when it is enforced.
func (s *scene) quota(ctx context.Context, hard map[string]string) error {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
	for name, value := range hard {
		q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	if _, err := s.Client().CoreV1().ResourceQuotas(s.namespace).Create(ctx, q, metav1.CreateOptions{}); err != nil {
		return err
	}
	return eventually(ctx, patience, func() string {
		q, err := s.Client().CoreV1().ResourceQuotas(s.namespace).Get(ctx, "team", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if len(q.Status.Used) != len(hard) {
			return fmt.Sprintf("quota team: the use of %d of %d resources is known", len(q.Status.Used), len(hard))
		}
		return ""
	})
}

// refusesClaim has the namespace's quota of something used up.
func (s *scene) refusesClaim(ctx context.Context, name string) error {
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	if err := s.quota(ctx, map[string]string{name: "0"}); err != nil {
		return err
	}
	if err := s.pod(ctx, "legacy", gpu, 1); err != nil {
		return fmt.Errorf("want the pod to be admitted: %w", err)
	}
	text := exceeded + "team, requested: " + name + "=1, used: " + name + "=0, limited: " + name + "=0"
	return s.schedulerFails(ctx, "legacy", text)
}

func countsOnce(ctx context.Context, s *scene) error {
	if err := s.driverOn(ctx, s.node); err != nil {
		return err
	}
	class := manifests.DeviceClass().Name + deviceCount
	hard := map[string]string{claimCount: "5", class: "5", "requests." + gpu: "5"}
	if err := s.quota(ctx, hard); err != nil {
		return err
	}
	if err := s.pod(ctx, "legacy", gpu, 1); err != nil {
		return err
	}
	if _, err := s.runsByDRA(ctx, "legacy"); err != nil {
		return err
	}
	var last string
	err := eventually(ctx, patience, func() string {
		q, err := s.Client().CoreV1().ResourceQuotas(s.namespace).Get(ctx, "team", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		var used []string
		for _, name := range slices.Sorted(maps.Keys(hard)) {
			n := q.Status.Used[corev1.ResourceName(name)]
			used = append(used, name+"="+n.String())
		}
		last = strings.Join(used, ", ")
		for _, u := range used {
			if !strings.HasSuffix(u, "=1") {
				return "want 1 used of each; got " + last
			}
		}
		return ""
	})
	if err == nil {
		s.saw("used: %s", last)
	}
	return err
}

func explicitCounts(ctx context.Context, s *scene) error {
	name := "requests." + s.ownResource()
	if err := s.quota(ctx, map[string]string{name: "0"}); err != nil {
		return err
	}
	if _, err := s.class(ctx, s.own("class"), ""); err != nil {
		return err
	}
	if err := s.claim(ctx, "before", s.own("class"), 1); err != nil {
		return fmt.Errorf("want a claim of a class without the name to be admitted: %w", err)
	}
	if err := s.patchClass(ctx, s.own("class"), fmt.Sprintf(`{"spec":{"extendedResourceName":%q}}`, s.ownResource())); err != nil {
		return err
	}
	text := exceeded + "team, requested: " + name + "=1, used: " + name
	n := 0
	// The API server hears of the class by a watch.
	return eventually(ctx, patience, func() string {
		n++
		err := s.claim(ctx, fmt.Sprintf("after-%d", n), s.own("class"), 1)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), text) {
			s.saw("create refused: %s", err)
			return ""
		}
		return fmt.Sprintf("want a claim of a class with the name refused: …%s…; got: %v", text, err)
	})
}
