package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

func heldLease(name, operation string, renewed time.Time) *coordinationv1.Lease {
	l := leaseOf("she@host/1", renewed, 3)
	l.Name, l.Labels = name, map[string]string{ManagedByLabel: FieldManager}
	l.Annotations = map[string]string{cluster.LockInfoPrefix + "operation": operation}
	return l
}

// Unprepare takes away what a pool's run stands on. A holder is dead when its Lease was
// watched and not renewed, whatever the times in it say.
func TestAlone(t *testing.T) {
	const live, dead = time.Duration(0), -time.Hour
	for _, c := range []struct {
		title   string
		op      plan.Operation
		pool    string
		name    string
		holder  string // its operation
		renewed time.Duration
		locked  bool
		watched time.Duration
	}{
		{"unprepare beside an apply", plan.Unprepare, "", "pool-a", "migrate", live, true, 0},
		{"unprepare beside a rollback", plan.Unprepare, "", "pool-a", "rollback", live, true, 0},
		{"unprepare after an apply that died", plan.Unprepare, "", "pool-a", "migrate", dead, false, 20 * time.Second},
		{"unprepare under its own lock", plan.Unprepare, "", "shared", "unprepare", live, false, 0},
		{"prepare beside an apply", plan.Prepare, "", "pool-a", "migrate", live, false, 0},
		{"apply beside unprepare", plan.Migrate, "b", "shared", "unprepare", live, true, 0},
		{"rollback beside prepare", plan.Rollback, "b", "shared", "prepare", live, true, 0},
		{"apply while another makes the DeviceClass", plan.Migrate, "b", "shared", "migrate", live, false, 0},
		{"apply beside another pool's", plan.Migrate, "b", "pool-a", "migrate", live, false, 0},
		{"apply after an unprepare that died", plan.Migrate, "b", "shared", "unprepare", dead, false, 20 * time.Second},
	} {
		t.Run(c.title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				client := newServer(t, heldLease(c.name, c.holder, begin.Add(c.renewed)))
				s := &session{plan: &plan.Plan{Operation: c.op},
					Engine: &Engine{bare: client, deps: Deps{Namespace: "tool", Clock: clock.RealClock{}, Holder: "me@here/2"}}}
				var locked *LockedError
				if err := s.alone(t.Context(), c.pool); errors.As(err, &locked) != c.locked || err != nil && !c.locked {
					t.Errorf("%v, want locked %v", err, c.locked)
				}
				if took := time.Since(begin); took != c.watched {
					t.Errorf("after %s, want %s", took, c.watched)
				}
				now, err := Inspect(t.Context(), client, "tool", c.name)
				if taken := now.Epoch > 3; err != nil || taken != (c.watched > 0) || taken && now.Held() {
					t.Errorf("the Lease is %+v, %v: taken, and given back, only from a dead holder", now, err)
				}
			})
		})
	}
}

// A holder that lives and whose clock is hours behind looks expired.
func TestAloneBesideASkewedHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		behind := lockOptions(client, "bob@b/2")
		behind.Clock = skewed{by: -3 * time.Hour}
		bob := mustAcquire(t, behind)
		s := &session{plan: &plan.Plan{Operation: plan.Unprepare},
			Engine: &Engine{bare: client, deps: Deps{Namespace: "tool", Clock: clock.RealClock{}, Holder: "me@here/2"}}}
		var locked *LockedError
		if err := s.alone(t.Context(), ""); !errors.As(err, &locked) || bob.Alive() != nil {
			t.Errorf("%v, holder alive: %v; want locked by bob, who lives", err, bob.Alive() == nil)
		}
	})
}

// Others may keep Leases in the namespace that the tool was given.
func TestAloneLeavesOthersLeases(t *testing.T) {
	foreign := leaseOf("kube-scheduler", time.Unix(0, 0), 3)
	foreign.Name = "kube-scheduler"
	s := &session{plan: &plan.Plan{Operation: plan.Unprepare},
		Engine: &Engine{bare: newServer(t, foreign), deps: Deps{Namespace: "tool", Clock: clock.RealClock{}}}}
	if held, err := s.excluding(t.Context(), ""); err != nil || len(held) > 0 {
		t.Errorf("%q, %v: want none", held, err)
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
