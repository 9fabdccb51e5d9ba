package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func TestRollout(t *testing.T) {
	t.Parallel()
	rolling := appsv1.DaemonSetUpdateStrategy{
		Type:          appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr.To(intstr.FromString("10%"))},
	}
	onDelete := appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	ds := daemonSet(nil)
	ds.Spec.UpdateStrategy = rolling

	pre, err := StrategyPreImage(ds, cluster.ObjectRef{})
	if err != nil {
		t.Fatal(err)
	}
	during, err := patched(t, ds, Edit{Patch: OnDelete(ds)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(onDelete, during.Spec.UpdateStrategy); diff != "" {
		t.Errorf("after OnDelete (-want +got):\n%s", diff)
	}
	if p := OnDelete(during); len(p) != 0 {
		t.Errorf("a second OnDelete: %v, want nothing to do", p)
	}
	back, err := RestoreStrategy(during, pre)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patched(t, during, Edit{Patch: back})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rolling, after.Spec.UpdateStrategy); diff != "" {
		t.Errorf("after RestoreStrategy (-want +got):\n%s", diff)
	}

	// Somebody else's choice stays.
	other := daemonSet(nil)
	other.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}
	if p, err := RestoreStrategy(other, pre); err != nil || len(p) != 0 {
		t.Errorf("RestoreStrategy of a strategy that somebody changed: %v, %v, want nothing to do", p, err)
	}
	if _, err := patched(t, other, Edit{Patch: OnDelete(ds)}); err == nil {
		t.Error("OnDelete replaced a strategy that had changed since")
	}
	if _, err := RestoreStrategy(during, cluster.PreImage{Path: AffinityPath}); err == nil {
		t.Error("a pre-image of another field is no error")
	}
}
