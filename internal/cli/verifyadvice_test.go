package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// A pool that was never moved has a next step, unless somebody is taking it.
func TestVerifyAdvises(t *testing.T) {
	lease := func(ago time.Duration) runtime.Object { return leaseOf(time.Unix(0, 0).Add(-ago)) }
	const apply = "no run has moved the node: `dramigrate plan gpu-a` shows what a move would do, `dramigrate apply gpu-a` moves the pool"
	for _, tt := range []struct {
		name    string
		objects []runtime.Object
		want    string
	}{
		{"no run", preparedCluster(), apply},
		{"a run that is dead", append(preparedCluster(), lease(time.Hour)), apply},
		{"a run", append(preparedCluster(), lease(30*time.Second)), "no run has moved the node; a run is under way, by she@host/1 since 1969-12-31T23:59:30Z: wait for its end, or follow it by `dramigrate status gpu-a --watch`"},
	} {
		o := invoke(t, tt.objects, nil, done, "verify", "gpu-a", "-o", "json")
		if !strings.Contains(o.stdout, tt.want) {
			t.Errorf("%s: exit code %d, want %q\n%s%s", tt.name, o.code, tt.want, o.stdout, o.err)
		}
	}
}

// leaseOf is the lock of pool gpu-a as a run has renewed it last.
func leaseOf(renewed time.Time) runtime.Object {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dramigrate-system", Name: "pool-gpu-a"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("she@host/1"), LeaseDurationSeconds: ptr.To[int32](60),
			LeaseTransitions: ptr.To[int32](3), AcquireTime: &at, RenewTime: &at},
	}
}

// Who watches while a run goes on is not told to begin another.
func TestVerifyWatchAdvises(t *testing.T) {
	for _, tt := range []struct {
		name  string
		since time.Duration
		want  string
	}{
		{"a run", 30 * time.Second, "a run is under way, by she@host/1"},
		{"a run that is dead", time.Hour, "`dramigrate apply gpu-a` moves the pool"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := startVerb(t, Streams{}, append(preparedCluster(), leaseOf(time.Now().Add(-tt.since))), nil, "verify", "gpu-a", "--watch", "--for", "1s")
			w.wait()
			if out := w.out.take(); !strings.Contains(out, tt.want) {
				t.Errorf("%s: want %q\n%s%s", tt.name, tt.want, out, w.err.take())
			}
		})
	}
}
