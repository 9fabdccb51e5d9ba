package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
)

// DefaultTTL is how long a Lease outlives its last renewal.
const DefaultTTL = cluster.DefaultLockTTL

// The shares of the TTL by which a lock is kept. A holder gives up while a third of
// the TTL is still left, so that it has stopped before anybody else may begin.
const (
	renewShare   = 4  // renewed each TTL/4
	retryShare   = 16 // after a failed renewal, tried again each TTL/16
	marginShare  = 12 // how much longer than a renew interval a silent holder is watched
	loseNumer    = 2  // given up after 2/3 of the TTL without a renewal
	loseDenom    = 3
	releaseLimit = 10 * time.Second
)

// ErrLockLost is the cause of everything that fails because a Lease is not ours
// any more.
var ErrLockLost = errors.New("lock lost")

// ErrLockReleased is what a lock answers after Release.
var ErrLockReleased = errors.New("lock released")

// LockOptions say which Lease to take and how to keep it.
type LockOptions struct {
	// Client renews the Lease. It must not be fenced by the lock itself.
	Client          kubernetes.Interface
	Namespace, Name string
	// Holder is unique to this process: NewHolder.
	Holder string
	// TTL is DefaultTTL if it is 0. Below a second it is a second, because a Lease
	// counts in seconds.
	TTL time.Duration
	// Wait is how long to wait for another holder to go; 0 fails at once. A holder
	// whose Lease has expired is watched for QuietFor in any case.
	Wait time.Duration
	// Info goes into annotations of the Lease, for whoever is locked out.
	Info map[string]string
	// MinEpoch is the highest epoch that is known from elsewhere (the journal, the
	// nodes). The lock's epoch is higher, even if somebody deleted the Lease.
	MinEpoch int64
	Clock    clock.Clock
	// Sink gets LockTaken and LockLost; it may be nil.
	Sink event.Sink
}

// Lock is a held Lease. It renews itself until Release, or until it is lost.
type Lock struct {
	o      LockOptions
	epoch  int64
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // ends the renewals
	done   chan struct{}      // closed when the renewals have ended

	mu      sync.Mutex
	lease   *coordinationv1.Lease // as it was written last
	renewed time.Time             // before the last successful renewal was sent
	err     error                 // why the lock is not held any more
}

// Epoch is the fencing token: it is higher than that of every earlier holder.
func (l *Lock) Epoch() int64 { return l.epoch }

// Holder is the holder's identity as it stands in the Lease.
func (l *Lock) Holder() string { return l.o.Holder }

// Lease names the Lease: namespace/name.
func (l *Lock) Lease() string { return l.o.Namespace + "/" + l.o.Name }

// Context ends when the lock is lost (its cause is then ErrLockLost), is released,
// or when the context that was given to Acquire ends.
func (l *Lock) Context() context.Context { return l.ctx }

// Alive is nil as long as nobody else can hold the lock. It compares the clock
// itself, because a process that was stopped and goes on may get here before its
// own renewals have noticed anything.
func (l *Lock) Alive() error {
	l.mu.Lock()
	if l.err == nil {
		if age := elapsed(l.renewed, l.o.Clock.Now()); age >= l.loseAfter() {
			l.loseLocked(fmt.Sprintf("not renewed for %s", age.Round(time.Millisecond)))
		}
	}
	err := l.err
	l.mu.Unlock()
	return err
}

func (l *Lock) loseAfter() time.Duration { return l.o.TTL * loseNumer / loseDenom }

// loseLocked records the loss, once, with l.mu held.
func (l *Lock) loseLocked(reason string) {
	if l.err != nil {
		return
	}
	l.err = fmt.Errorf("lease %s: %w: %s", l.Lease(), ErrLockLost, reason)
	l.cancel(l.err)
	l.stop()
	if l.o.Sink != nil {
		// The sink may take its time; the lock's own state may not.
		go l.o.Sink(event.LockLost{Stamp: event.StampAt(l.o.Clock.Now()), Lease: l.Lease(), Reason: reason})
	}
}

func (l *Lock) lose(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loseLocked(reason)
}

// elapsed is the time between two moments by the monotonic clock or by the wall
// clock, whichever says more: the monotonic clock of Linux stands still while a
// machine sleeps, and the wall clock can be set back.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// keep renews until ctx ends or the lock is lost.
func (l *Lock) keep(ctx context.Context) {
	defer close(l.done)
	pause := l.o.TTL / renewShare
	failed := "" // why the last renewals failed
	for {
		t := l.o.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C():
		}
		l.mu.Lock()
		lease, since := l.lease.DeepCopy(), l.renewed
		l.mu.Unlock()
		sent := l.o.Clock.Now()
		age := elapsed(since, sent)
		if age >= l.loseAfter() {
			reason := fmt.Sprintf("not renewed for %s", age.Round(time.Millisecond))
			if failed != "" {
				reason += ": " + failed
			}
			l.lose(reason)
			return
		}
		next, err := l.renew(ctx, lease, min(l.o.TTL/renewShare, l.loseAfter()-age))
		var gone *takenError
		switch {
		case err == nil:
			l.mu.Lock()
			l.lease, l.renewed = next, sent
			l.mu.Unlock()
			pause, failed = l.o.TTL/renewShare, ""
		case errors.As(err, &gone):
			l.lose(gone.reason)
			return
		case ctx.Err() != nil:
			return
		default:
			pause, failed = min(l.o.TTL/retryShare, max(l.loseAfter()-elapsed(since, l.o.Clock.Now()), time.Millisecond)), err.Error()
		}
	}
}

// takenError says that the Lease is not ours any more; trying again is of no use.
type takenError struct{ reason string }

func (e *takenError) Error() string { return e.reason }

// renew writes a new renewTime, within limit.
func (l *Lock) renew(ctx context.Context, lease *coordinationv1.Lease, limit time.Duration) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	leases := l.o.Client.CoordinationV1().Leases(l.o.Namespace)
	for range 2 {
		lease.Spec.RenewTime = &metav1.MicroTime{Time: l.o.Clock.Now()}
		next, err := leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: FieldManager})
		switch {
		case err == nil:
			return next, nil
		case apierrors.IsNotFound(err):
			return nil, &takenError{"the Lease was deleted"}
		case !apierrors.IsConflict(err):
			return nil, err
		}
		// A conflict is our own renewal whose answer was lost, a label that
		// somebody set, or another holder. The object tells.
		if lease, err = leases.Get(ctx, l.o.Name, metav1.GetOptions{}); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, &takenError{"the Lease was deleted"}
			}
			return nil, err
		}
		if reason := l.notOurs(lease); reason != "" {
			return nil, &takenError{reason}
		}
	}
	return nil, fmt.Errorf("lease %s: changed by others while it was renewed", l.Lease())
}

// notOurs says why a Lease, as it was read, is not this lock's.
func (l *Lock) notOurs(lease *coordinationv1.Lease) string {
	h := cluster.LockOf(lease)
	switch {
	case h.Holder == "":
		return "the Lease was unlocked by somebody else"
	case h.Holder != l.o.Holder || h.Epoch != l.epoch:
		return "the Lease is held by " + h.Holder
	}
	return ""
}

// Release gives the Lease back and keeps the object, which carries the epoch. The
// lock is not alive from the moment Release is called. It is not an error if the
// lock was lost before.
func (l *Lock) Release(ctx context.Context) error {
	l.mu.Lock()
	lost := l.err != nil
	if !lost {
		l.err = fmt.Errorf("lease %s: %w", l.Lease(), ErrLockReleased)
		l.cancel(l.err)
	}
	l.mu.Unlock()
	l.stop()
	<-l.done
	if lost {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, releaseLimit)
	defer cancel()
	leases := l.o.Client.CoordinationV1().Leases(l.o.Namespace)
	l.mu.Lock()
	lease := l.lease.DeepCopy()
	l.mu.Unlock()
	for range 3 {
		free(lease)
		_, err := leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: FieldManager})
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("lease %s: release: %w", l.Lease(), err)
		}
		if lease, err = leases.Get(ctx, l.o.Name, metav1.GetOptions{}); err != nil {
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("lease %s: release: %w", l.Lease(), err)
		}
		if l.notOurs(lease) != "" {
			return nil
		}
	}
	return fmt.Errorf("lease %s: release: changed by others again and again", l.Lease())
}

// free takes the holder out of a Lease.
func free(lease *coordinationv1.Lease) {
	none := ""
	lease.Spec.HolderIdentity = &none
	lease.Spec.AcquireTime, lease.Spec.RenewTime = nil, nil
}
