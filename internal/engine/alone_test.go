package engine

import (
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

func lease(name, operation string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tool", Name: name, Annotations: map[string]string{cluster.LockInfoPrefix + "operation": operation}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("she@host/1"), LeaseDurationSeconds: ptr.To(int32(60)),
			RenewTime: &metav1.MicroTime{Time: renewed}},
	}
}

// Unprepare takes away what a pool's run stands on.
func TestAlone(t *testing.T) {
	now := time.Unix(10_000, 0)
	for _, c := range []struct {
		title  string
		op     plan.Operation
		pool   string
		lease  *coordinationv1.Lease
		locked bool
	}{
		{"unprepare beside an apply", plan.Unprepare, "", lease("pool-a", "migrate", now), true},
		{"unprepare beside a rollback", plan.Unprepare, "", lease("pool-a", "rollback", now), true},
		{"unprepare after an apply that died", plan.Unprepare, "", lease("pool-a", "migrate", now.Add(-2*time.Minute)), false},
		{"unprepare under its own lock", plan.Unprepare, "", lease("shared", "unprepare", now), false},
		{"prepare beside an apply", plan.Prepare, "", lease("pool-a", "migrate", now), false},
		{"apply beside unprepare", plan.Migrate, "b", lease("shared", "unprepare", now), true},
		{"rollback beside prepare", plan.Rollback, "b", lease("shared", "prepare", now), true},
		{"apply while another makes the DeviceClass", plan.Migrate, "b", lease("shared", "migrate", now), false},
		{"apply beside another pool's", plan.Migrate, "b", lease("pool-a", "migrate", now), false},
		{"apply after an unprepare that died", plan.Migrate, "b", lease("shared", "unprepare", now.Add(-2*time.Minute)), false},
	} {
		t.Run(c.title, func(t *testing.T) {
			s := &session{plan: &plan.Plan{Operation: c.op},
				Engine: &Engine{bare: newServer(t, c.lease), deps: Deps{Namespace: "tool", Clock: clocktesting.NewFakeClock(now)}}}
			var locked *LockedError
			if err := s.alone(t.Context(), c.pool); errors.As(err, &locked) != c.locked || err != nil && !c.locked {
				t.Errorf("%v, want locked %v", err, c.locked)
			}
		})
	}
}

// The epoch of a lost Lease is known from the nodes, or the next run would be taken
// for one that lost its lock.
func TestNodeEpoch(t *testing.T) {
	node := func(name, pool string, epoch int64) *corev1.Node {
		text, err := cluster.NodeState{Pool: pool, Selector: "s", Operation: "migrate", Run: "r1", Epoch: epoch}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{cluster.StateAnnotation: text}}}
	}
	s := &session{plan: &plan.Plan{Operation: plan.Rollback, Pool: &plan.Pool{Name: "a"}},
		Engine: &Engine{bare: newServer(t, node("a-1", "a", 6), node("a-2", "a", 4), node("b-1", "b", 9), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "plain"}})}}
	if got, err := s.nodeEpoch(t.Context()); err != nil || got != 6 {
		t.Errorf("epoch %d, error %v; want 6, the highest of pool a", got, err)
	}
}

// A Lease cannot be made where its namespace is not: that ends the attempt at once.
func TestAcquireWithoutNamespace(t *testing.T) {
	client := newServer(t)
	tries := 0
	client.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if tries++; tries > 1 {
			t.Fatal("tried again")
		}
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "tool")
	})
	_, err := Acquire(t.Context(), LockOptions{Client: client, Namespace: "tool", Name: "pool-a", Holder: "me", Clock: clocktesting.NewFakeClock(time.Unix(1, 0))})
	if !apierrors.IsNotFound(err) {
		t.Errorf("%v, want that the namespace is not found", err)
	}
}
