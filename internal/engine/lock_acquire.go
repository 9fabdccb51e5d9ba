package engine

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
)

// recheck bounds how long a wait for another holder relies on one watch.
const recheck = 5 * time.Second

// NewHolder is an identity for this process: user@host and a random UUID.
func NewHolder(user, host string) string {
	return user + "@" + host + "/" + string(uuid.NewUUID())
}

// LockedError says that somebody else holds the Lease.
type LockedError struct{ cluster.LockInfo }

func (e *LockedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lease %s/%s: locked by %s since %s", e.Namespace, e.Name, e.Holder, e.Since.Format(time.RFC3339))
	if op := e.Info["operation"]; op != "" {
		fmt.Fprintf(&b, " (%s)", op)
	}
	fmt.Fprintf(&b, ", renewed %s, expires %s unless renewed", e.RenewedAt.Format(time.RFC3339), e.ExpiresAt.Format(time.RFC3339))
	fmt.Fprintf(&b, "; give --lock-wait to wait for its end; `%s` shows the holder, and takes the lock of one that is dead", e.unlock())
	return b.String()
}

// unlock is the command that shows the holder of a Lease. The name of a pool that does
// not fit into the Lease's name is not in it, but what is gives the same Lease.
func (e *LockedError) unlock() string {
	if e.Name == cluster.RecordName("") {
		return "dramigrate unlock --shared"
	}
	return "dramigrate unlock " + strings.TrimPrefix(e.Name, "pool-")
}

// Acquire takes the Lease and keeps it. A Lease that another live process holds
// gives a *LockedError.
//
// No clock is trusted to tell that a holder is dead. A Lease that has expired by its
// own times is taken only after it was not renewed for a renew interval and a margin
// more while we looked; one that has not expired by its times, but is not renewed
// for its whole TTL while we look, is taken as well. That nobody renewed it is
// proven by the resourceVersion of the taking update.
func Acquire(ctx context.Context, o LockOptions) (*Lock, error) {
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	o.TTL = max(o.TTL, time.Second)
	a := &acquirer{o: o, begin: o.Clock.Now()}
	leases := o.Client.CoordinationV1().Leases(o.Namespace)
	for {
		lease, err := leases.Get(ctx, o.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			lease, err = nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("lease %s/%s: %w", o.Namespace, o.Name, err)
		}
		wait := a.judge(lease)
		switch {
		case wait == 0:
			sent := o.Clock.Now()
			taken, err := a.take(ctx, lease)
			if err == nil {
				return a.start(ctx, taken, sent, lease), nil
			}
			// A Lease that was deleted in between is made; a namespace that is not there
			// takes none.
			gone := apierrors.IsNotFound(err) && lease != nil
			if !gone && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
				return nil, fmt.Errorf("lease %s/%s: take: %w", o.Namespace, o.Name, err)
			}
		case wait < 0:
			return nil, &LockedError{cluster.LockOf(lease)}
		default:
			if err := a.waitChange(ctx, lease, min(wait, recheck)); err != nil {
				return nil, fmt.Errorf("lease %s/%s: held by %s: %w", o.Namespace, o.Name, cluster.LockOf(lease).Holder, err)
			}
		}
	}
}

// acquirer is one Acquire: what it saw of the Lease and when.
type acquirer struct {
	o     LockOptions
	begin time.Time
	seen  string // resourceVersion of the Lease
	since time.Time
	// renewed says that the Lease changed while we looked: its holder lives, or
	// there is a new one.
	renewed bool
}

// QuietFor is how long a Lease that has expired by its own times is watched before it is
// taken: one that lives is renewed within that time, whatever the clocks say.
func QuietFor(i cluster.LockInfo) time.Duration { return i.TTL/renewShare + i.TTL/marginShare }

// judge says how long to wait before the Lease may be taken: 0 is now, negative is
// never within the time that we have.
func (a *acquirer) judge(lease *coordinationv1.Lease) time.Duration {
	now := a.o.Clock.Now()
	if lease == nil {
		return 0
	}
	if lease.ResourceVersion != a.seen || a.since.IsZero() {
		a.renewed = !a.since.IsZero()
		a.seen, a.since = lease.ResourceVersion, now
	}
	info := cluster.LockOf(lease)
	if !info.Held() || info.Holder == a.o.Holder {
		return 0
	}
	silent := now.Sub(a.since)
	quiet := QuietFor(info)
	left := a.o.Wait - now.Sub(a.begin) // of the caller's patience
	if info.Expired(now) {
		if silent >= quiet {
			return 0
		}
		// Watched even if the caller does not wait: by its Lease this is no live
		// holder. If it then renews, its clock is behind ours and it lives.
		if a.renewed && left <= 0 {
			return -1
		}
		return quiet - silent
	}
	if silent >= info.TTL+info.TTL/marginShare {
		return 0
	}
	if left <= 0 {
		return -1
	}
	return min(left, max(info.ExpiresAt.Sub(now), time.Millisecond), info.TTL+info.TTL/marginShare-silent)
}

// take writes us into the Lease; it fails if the Lease is not as it was read.
func (a *acquirer) take(ctx context.Context, old *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	leases := a.o.Client.CoordinationV1().Leases(a.o.Namespace)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: a.o.Namespace, Name: a.o.Name}}
	if old != nil {
		lease = old.DeepCopy()
	}
	var last int64
	if lease.Spec.LeaseTransitions != nil {
		last = int64(*lease.Spec.LeaseTransitions)
	}
	epoch := int32(max(last, a.o.MinEpoch) + 1)
	// A Lease counts in whole seconds. Rounded up, so that nobody takes it for
	// expired before we do.
	seconds := int32((a.o.TTL + time.Second - 1) / time.Second)
	now := metav1.MicroTime{Time: a.o.Clock.Now()}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &a.o.Holder, LeaseDurationSeconds: &seconds, LeaseTransitions: &epoch,
		AcquireTime: &now, RenewTime: &now,
	}
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	lease.Labels[ManagedByLabel] = FieldManager
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	maps.DeleteFunc(lease.Annotations, func(k, _ string) bool { return strings.HasPrefix(k, cluster.LockInfoPrefix) })
	for k, v := range a.o.Info {
		lease.Annotations[cluster.LockInfoPrefix+k] = v
	}
	if old == nil {
		return leases.Create(ctx, lease, metav1.CreateOptions{FieldManager: FieldManager})
	}
	return leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: FieldManager})
}

// start begins the renewals of a Lease that was just taken.
func (a *acquirer) start(ctx context.Context, taken *coordinationv1.Lease, sent time.Time, old *coordinationv1.Lease) *Lock {
	l := &Lock{o: a.o, epoch: int64(*taken.Spec.LeaseTransitions), lease: taken, renewed: sent, done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	// An interrupted run still has to finish what it has begun: the lock is kept
	// until Release, whatever becomes of ctx.
	keep, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.keep(keep)
	if a.o.Sink != nil {
		e := event.LockTaken{Stamp: event.StampAt(sent), Lease: l.Lease(), Holder: a.o.Holder, Epoch: l.epoch}
		if old != nil {
			e.From = cluster.LockOf(old).Holder
		}
		a.o.Sink(e)
	}
	return l
}

// waitChange returns when the Lease changes, or after d.
func (a *acquirer) waitChange(ctx context.Context, lease *coordinationv1.Lease, d time.Duration) error {
	t := a.o.Clock.NewTimer(d)
	defer t.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var changed <-chan struct{}
	w, err := a.o.Client.CoordinationV1().Leases(a.o.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", a.o.Name).String(),
		ResourceVersion: lease.ResourceVersion,
	})
	if err == nil { // without a watch, d alone decides
		defer w.Stop()
		hit := make(chan struct{})
		changed = hit
		go func() {
			// A watch that ends early is no change; the timer goes on.
			for e := range w.ResultChan() {
				if now, ok := e.Object.(*coordinationv1.Lease); !ok || now.ResourceVersion == lease.ResourceVersion {
					continue
				}
				close(hit)
				return
			}
		}()
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C():
	case <-changed:
	}
	return nil
}
