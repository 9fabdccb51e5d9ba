package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// A server is asked by a dry run alone, and what it answers is kept with its source.
func TestProbeGate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer func(*resourcev1.DeviceClass) error
		want   *Feature
		reason string
	}{
		{"kept", func(*resourcev1.DeviceClass) error { return nil },
			&Feature{Enabled: true, Evidence: "dry-run create of a DeviceClass: the server kept extendedResourceName"}, ""},
		{"dropped", func(c *resourcev1.DeviceClass) error { c.Spec.ExtendedResourceName = nil; return nil },
			&Feature{Evidence: "dry-run create of a DeviceClass: the server dropped extendedResourceName"}, ""},
		{"forbidden", func(*resourcev1.DeviceClass) error {
			return apierrors.NewForbidden(resourcev1.Resource("deviceclasses"), "", nil)
		}, nil, "dry-run create of a DeviceClass: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := server()
			client.PrependReactor("create", "deviceclasses", func(a clienttesting.Action) (bool, runtime.Object, error) {
				create := a.(clienttesting.CreateActionImpl)
				if !slices.Equal(create.CreateOptions.DryRun, []string{metav1.DryRunAll}) {
					t.Errorf("created with dry run %v, want All", create.CreateOptions.DryRun)
				}
				class := create.Object.(*resourcev1.DeviceClass).DeepCopy()
				err := tt.answer(class)
				return true, class, err
			})
			s, err := Load(context.Background(), client, LoadOptions{Advice: true, ProbeGate: true})
			if err != nil {
				t.Fatal(err)
			}
			got, seen := s.API.Features[FeatureExtendedResource]
			reason, unknown := s.IsUnknown(PartFeatures)
			if tt.want == nil {
				if seen || !unknown || !strings.Contains(reason, tt.reason) {
					t.Errorf("feature %+v, unknown %q; want it unknown by %q", got, reason, tt.reason)
				}
			} else if got != *tt.want || unknown {
				t.Errorf("feature %+v, unknown %q; want %+v", got, reason, *tt.want)
			}
			if creates := creations(client.Actions()); creates != 1 {
				t.Errorf("%d creations, want 1", creates)
			}
		})
	}
}

// Nobody is asked who did not say so.
func TestNoProbe(t *testing.T) {
	t.Parallel()
	client := server()
	if _, err := Load(context.Background(), client, LoadOptions{Advice: true}); err != nil {
		t.Fatal(err)
	}
	if n := creations(client.Actions()); n != 0 {
		t.Errorf("%d creations, want none", n)
	}
}

func creations(actions []clienttesting.Action) int {
	n := 0
	for _, a := range actions {
		if a.GetVerb() == "create" {
			n++
		}
	}
	return n
}
