package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/dramigrate/dramigrate/internal/event"
)

// With the default TTL of 60 s: renewed each 15 s, given up 40 s after the last
// renewal, and an expired holder is watched for 15 s and 5 s more.

func lockOptions(client kubernetes.Interface, holder string) LockOptions {
	return LockOptions{Client: client, Namespace: "tool", Name: "pool-a", Holder: holder,
		Info: map[string]string{"operation": "migrate"}, Clock: clock.RealClock{}}
}

func readLease(t *testing.T, client kubernetes.Interface) *coordinationv1.Lease {
	t.Helper()
	l, err := client.CoordinationV1().Leases("tool").Get(context.Background(), "pool-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// mustAcquire takes the lock and gives it back at the end of the test's bubble.
func mustAcquire(t *testing.T, o LockOptions) *Lock {
	t.Helper()
	l, err := Acquire(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Release(context.Background()) })
	return l
}

// leaseOf is a Lease as another process has left it.
func leaseOf(holder string, renewed time.Time, epoch int32) *coordinationv1.Lease {
	seconds := int32(60)
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tool", Name: "pool-a", Annotations: map[string]string{"dramigrate.dev/operation": "rollback"}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, LeaseTransitions: &epoch,
			AcquireTime: &at, RenewTime: &at},
	}
}

func TestAcquireAndRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		first := mustAcquire(t, lockOptions(client, "ann@a/1"))
		l := readLease(t, client)
		if first.Epoch() != 1 || *l.Spec.LeaseTransitions != 1 || *l.Spec.HolderIdentity != "ann@a/1" || *l.Spec.LeaseDurationSeconds != 60 {
			t.Errorf("epoch %d, lease %+v", first.Epoch(), l.Spec)
		}
		if l.Annotations["dramigrate.dev/operation"] != "migrate" || l.Labels["app.kubernetes.io/managed-by"] != "dramigrate" {
			t.Errorf("metadata: %v %v", l.Annotations, l.Labels)
		}
		if err := first.Alive(); err != nil {
			t.Error(err)
		}
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l = readLease(t, client); *l.Spec.HolderIdentity != "" || *l.Spec.LeaseTransitions != 1 {
			t.Errorf("released lease must stay with its transitions: %+v", l.Spec)
		}
		if !errors.Is(first.Alive(), ErrLockReleased) || !errors.Is(context.Cause(first.Context()), ErrLockReleased) {
			t.Errorf("after release: alive %v, cause %v", first.Alive(), context.Cause(first.Context()))
		}
		// A released lease is taken at once, under a higher epoch.
		begin := time.Now()
		if second := mustAcquire(t, lockOptions(client, "bob@b/2")); second.Epoch() != 2 || time.Since(begin) != 0 {
			t.Errorf("epoch %d after %s", second.Epoch(), time.Since(begin))
		}
	})
}

func TestAcquireHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t, leaseOf("bob@b/2", time.Now(), 7))
		begin := time.Now()
		_, err := Acquire(t.Context(), lockOptions(client, "ann@a/1"))
		var locked *LockedError
		if !errors.As(err, &locked) {
			t.Fatalf("got %v", err)
		}
		if time.Since(begin) != 0 {
			t.Errorf("took %s; without Wait a live holder is reported at once", time.Since(begin))
		}
		if locked.Holder != "bob@b/2" || locked.Epoch != 7 || locked.Info["operation"] != "rollback" ||
			!locked.Since.Equal(begin) || !locked.ExpiresAt.Equal(begin.Add(time.Minute)) {
			t.Errorf("%+v", locked)
		}
		for _, part := range []string{"tool/pool-a", "bob@b/2", "rollback"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not name %q", err, part)
			}
		}
	})
}

func TestAcquireWaitsForRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		first := mustAcquire(t, lockOptions(client, "bob@b/2"))
		go func() {
			time.Sleep(100 * time.Second)
			_ = first.Release(context.Background())
		}()
		o := lockOptions(client, "ann@a/1")
		o.Wait = 5 * time.Minute
		begin := time.Now()
		second := mustAcquire(t, o)
		// A watch wakes it: not one second passes between release and take.
		if took := time.Since(begin); took != 100*time.Second {
			t.Errorf("taken after %s", took)
		}
		if second.Epoch() != 2 {
			t.Errorf("epoch %d", second.Epoch())
		}
	})
}

func TestAcquireGivesUpWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		mustAcquire(t, lockOptions(client, "bob@b/2"))
		o := lockOptions(client, "ann@a/1")
		o.Wait = 3 * time.Minute
		begin := time.Now()
		_, err := Acquire(t.Context(), o)
		var locked *LockedError
		if !errors.As(err, &locked) || time.Since(begin) != 3*time.Minute {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

func TestTakeOverExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t, leaseOf("bob@b/2", time.Now().Add(-time.Hour), 7))
		var taken event.LockTaken
		o := lockOptions(client, "ann@a/1")
		o.Sink = func(e event.Event) { taken, _ = e.(event.LockTaken) }
		begin := time.Now()
		l := mustAcquire(t, o)
		if took := time.Since(begin); took != 20*time.Second {
			t.Errorf("taken over after %s of watching, want a renew interval and a margin: 20s", took)
		}
		if l.Epoch() != 8 || taken.From != "bob@b/2" || taken.Epoch != 8 {
			t.Errorf("epoch %d, event %+v", l.Epoch(), taken)
		}
	})
}

// A holder whose clock is hours behind looks expired, and lives.
func TestSkewedHolderLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		behind := lockOptions(client, "bob@b/2")
		behind.Clock = skewed{by: -3 * time.Hour}
		bob := mustAcquire(t, behind)
		begin := time.Now()
		_, err := Acquire(t.Context(), lockOptions(client, "ann@a/1"))
		var locked *LockedError
		if !errors.As(err, &locked) || locked.Holder != "bob@b/2" {
			t.Fatalf("got %v", err)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("took %s", took)
		}
		if bob.Alive() != nil {
			t.Error("the live holder has lost its lock")
		}
	})
}

// A holder whose clock was hours ahead looks alive for hours, and is dead: its
// Lease is free when it was not renewed for a whole TTL and a margin.
func TestSkewedHolderDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t, leaseOf("bob@b/2", time.Now().Add(3*time.Hour), 7))
		o := lockOptions(client, "ann@a/1")
		o.Wait = 10 * time.Minute
		begin := time.Now()
		mustAcquire(t, o)
		if took := time.Since(begin); took != 65*time.Second {
			t.Errorf("taken over after %s, want 65s", took)
		}
	})
}

type skewed struct {
	clock.RealClock
	by time.Duration
}

func (s skewed) Now() time.Time { return time.Now().Add(s.by) }

func TestOnlyOneWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, start := range map[string][]runtime.Object{
			"none": nil, "expired": {leaseOf("bob@b/2", time.Now().Add(-time.Hour), 7)},
		} {
			client := newServer(t, start...)
			var mu sync.Mutex
			var held []*Lock
			var refused int
			var wg sync.WaitGroup
			for _, name := range []string{"a", "b", "c", "d"} {
				wg.Go(func() {
					l, err := Acquire(t.Context(), lockOptions(client, name))
					mu.Lock()
					defer mu.Unlock()
					var locked *LockedError
					switch {
					case err == nil:
						held = append(held, l)
					case errors.As(err, &locked):
						refused++
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if len(held) != 1 || refused != 3 {
				t.Fatalf("%d hold the lock, %d were refused", len(held), refused)
			}
			_ = held[0].Release(t.Context())
		}
	})
}

func TestMinEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := lockOptions(newServer(t), "ann@a/1")
		o.MinEpoch = 41
		if l := mustAcquire(t, o); l.Epoch() != 42 {
			t.Errorf("epoch %d; a deleted Lease must not bring old epochs back", l.Epoch())
		}
	})
}

func TestRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		l := mustAcquire(t, lockOptions(client, "ann@a/1"))
		begin := time.Now()
		time.Sleep(time.Hour)
		synctest.Wait()
		if err := l.Alive(); err != nil {
			t.Fatal(err)
		}
		if at := readLease(t, client).Spec.RenewTime.Time; !at.Equal(begin.Add(time.Hour)) {
			t.Errorf("renewed at %s after %s", at, time.Since(begin))
		}
		var updates int
		for _, a := range client.Actions() {
			if a.GetVerb() == "update" {
				updates++
			}
		}
		if updates != 240 { // 3600 s / 15 s
			t.Errorf("%d renewals in an hour", updates)
		}
	})
}

// failRenewals makes updates of Leases fail, for as long as down says so. It comes
// before the first request: a fake takes no reactors while it is used.
func failRenewals(client *fake.Clientset, down func(since time.Duration) bool) {
	begin := time.Now()
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if !down(time.Since(begin)) {
			return false, nil, nil
		}
		return true, nil, apierrors.NewInternalError(errors.New("etcd is away"))
	})
}

func TestLostWithoutRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		var lost event.LockLost
		o := lockOptions(client, "ann@a/1")
		o.Sink = func(e event.Event) {
			if e, ok := e.(event.LockLost); ok {
				lost = e
			}
		}
		failRenewals(client, func(time.Duration) bool { return true })
		l := mustAcquire(t, o)
		time.Sleep(39 * time.Second)
		synctest.Wait()
		if err := l.Alive(); err != nil {
			t.Fatalf("lost after 39 s already: %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		// By the context, without anybody asking Alive.
		if cause := context.Cause(l.Context()); !errors.Is(cause, ErrLockLost) || !strings.Contains(cause.Error(), "etcd is away") {
			t.Errorf("after 40 s: cause %v", cause)
		}
		if err := l.Alive(); !errors.Is(err, ErrLockLost) {
			t.Errorf("alive: %v", err)
		}
		if lost.Lease != "tool/pool-a" {
			t.Errorf("event %+v", lost)
		}
	})
}

func TestRecoversBetweenRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		failRenewals(client, func(since time.Duration) bool { return since > 10*time.Second && since < 35*time.Second })
		l := mustAcquire(t, lockOptions(client, "ann@a/1"))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if err := l.Alive(); err != nil {
			t.Errorf("an outage shorter than 2/3 of the TTL must not lose the lock: %v", err)
		}
	})
}

func TestLostToOthers(t *testing.T) {
	for name, act := range map[string]func(context.Context, *fake.Clientset) error{
		"taken over": func(ctx context.Context, c *fake.Clientset) error {
			_, err := c.CoordinationV1().Leases("tool").Update(ctx, leaseOf("bob@b/2", time.Now(), 9), metav1.UpdateOptions{})
			return err
		},
		"same holder, later epoch": func(ctx context.Context, c *fake.Clientset) error {
			_, err := c.CoordinationV1().Leases("tool").Update(ctx, leaseOf("ann@a/1", time.Now(), 9), metav1.UpdateOptions{})
			return err
		},
		"deleted": func(ctx context.Context, c *fake.Clientset) error {
			return c.CoordinationV1().Leases("tool").Delete(ctx, "pool-a", metav1.DeleteOptions{})
		},
		"unlocked": func(ctx context.Context, c *fake.Clientset) error {
			shown, err := Inspect(ctx, c, "tool", "pool-a")
			if err != nil {
				return err
			}
			return Break(ctx, c, shown)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newServer(t)
				l := mustAcquire(t, lockOptions(client, "ann@a/1"))
				if err := act(t.Context(), client); err != nil {
					t.Fatal(err)
				}
				time.Sleep(15 * time.Second)
				synctest.Wait()
				if cause := context.Cause(l.Context()); !errors.Is(cause, ErrLockLost) {
					t.Fatalf("cause %v after the next renewal", cause)
				}
				before := readHolder(client)
				if err := l.Release(t.Context()); err != nil {
					t.Errorf("release of a lost lock: %v", err)
				}
				if after := readHolder(client); after != before {
					t.Errorf("release of a lost lock changed the holder from %q to %q", before, after)
				}
			})
		})
	}
}

func readHolder(client kubernetes.Interface) string {
	i, err := Inspect(context.Background(), client, "tool", "pool-a")
	if err != nil {
		return err.Error()
	}
	return i.Holder
}

func TestForeignLabelIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		l := mustAcquire(t, lockOptions(client, "ann@a/1"))
		lease := readLease(t, client)
		lease.Labels["team"] = "x"
		if _, err := client.CoordinationV1().Leases("tool").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := l.Alive(); err != nil {
			t.Error(err)
		}
		if readLease(t, client).Labels["team"] != "x" {
			t.Error("the label is lost")
		}
	})
}

// A process that was stopped (SIGSTOP) wakes up in the middle of anything: here its
// renewals hang, and the first thing that runs is the fence.
func TestAliveComparesTheClockItself(t *testing.T) {
	client := newServer(t)
	c := clocktesting.NewFakeClock(time.Now())
	o := lockOptions(client, "ann@a/1")
	o.Clock = c
	hang := make(chan struct{})
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-hang
		return true, nil, errors.New("gone")
	})
	l, err := Acquire(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c.Step(39 * time.Second)
	if err := l.Alive(); err != nil {
		t.Errorf("at 39 s: %v", err)
	}
	c.Step(time.Second)
	if err := l.Alive(); !errors.Is(err, ErrLockLost) {
		t.Errorf("at 40 s: %v", err)
	}
	if !errors.Is(context.Cause(l.Context()), ErrLockLost) {
		t.Errorf("cause %v", context.Cause(l.Context()))
	}
	close(hang)
	if err := l.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestElapsed(t *testing.T) {
	from := time.Now() // with a monotonic reading
	wall := from.Round(0)
	for name, tc := range map[string]struct {
		to   time.Time
		want time.Duration
	}{
		"both clocks":                    {from.Add(10 * time.Second), 10 * time.Second},
		"asleep: only the wall clock":    {wall.Add(time.Hour), time.Hour},
		"wall clock set back: monotonic": {from.Add(10 * time.Second), 10 * time.Second},
	} {
		if got := elapsed(from, tc.to); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestInterruptKeepsTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		ctx, interrupt := context.WithCancel(t.Context())
		l, err := Acquire(ctx, lockOptions(client, "ann@a/1"))
		if err != nil {
			t.Fatal(err)
		}
		interrupt()
		if l.Context().Err() == nil {
			t.Error("the interrupt does not reach the lock's context")
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if err := l.Alive(); err != nil {
			t.Errorf("what was begun must still be finished under the lock: %v", err)
		}
		if err := l.Release(context.Background()); err != nil || readHolder(client) != "" {
			t.Errorf("release: %v, holder %q", err, readHolder(client))
		}
	})
}
