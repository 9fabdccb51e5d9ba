package engine

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// Inspect reads who holds a Lease. A Lease that was never taken is reported as free.
func Inspect(ctx context.Context, client kubernetes.Interface, namespace, name string) (cluster.LockInfo, error) {
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return cluster.LockInfo{Namespace: namespace, Name: name}, nil
	}
	if err != nil {
		return cluster.LockInfo{}, fmt.Errorf("lease %s/%s: %w", namespace, name, err)
	}
	return cluster.LockOf(lease), nil
}

// Break takes the holder out of a Lease, exactly the one that Inspect has shown, alive
// or dead. If the Lease has changed otherwise than by a renewal since, a *LockedError
// names who holds it now. The holder notices at its next renewal; until then it may still
// write to nodes that nobody else has marked.
func Break(ctx context.Context, client kubernetes.Interface, shown cluster.LockInfo) error {
	for range 5 {
		lease, err := readHeld(ctx, client, shown)
		if lease == nil || err != nil {
			return err
		}
		if now := cluster.LockOf(lease); !sameHold(now, shown) {
			return &LockedError{now}
		}
		if freed, err := breakAsRead(ctx, client, lease); freed || err != nil {
			return err
		}
	}
	return fmt.Errorf("lease %s/%s: unlock: it is renewed faster than it can be broken", shown.Namespace, shown.Name)
}

// BreakExpired is Break for a Lease that has expired by its own times. Our clock may be
// ahead, so that these do not tell whether the holder lives: it is watched for QuietFor,
// as Acquire does it, and one that changes before it is taken gives a *LockedError as
// well. If ctx ends meanwhile nothing was taken.
func BreakExpired(ctx context.Context, client kubernetes.Interface, shown cluster.LockInfo, c clock.Clock) error {
	a := &acquirer{o: LockOptions{Client: client, Namespace: shown.Namespace, Name: shown.Name, Clock: c}, begin: c.Now()}
	for {
		lease, err := readHeld(ctx, client, shown)
		if lease == nil || err != nil {
			return err
		}
		now := cluster.LockOf(lease)
		wait := a.judge(lease)
		switch {
		case wait < 0 || !sameHold(now, shown) || !now.RenewedAt.Equal(shown.RenewedAt):
			return &LockedError{now}
		case wait > 0:
			if err := a.waitChange(ctx, lease, min(wait, recheck)); err != nil {
				return fmt.Errorf("lease %s/%s: watched whether %s renews it: %w", now.Namespace, now.Name, now.Holder, err)
			}
		default:
			if freed, err := breakAsRead(ctx, client, lease); freed || err != nil {
				return err
			}
		}
	}
}

// sameHold says that a Lease is held by whom it was, without a break.
func sameHold(a, b cluster.LockInfo) bool { return a.Holder == b.Holder && a.Epoch == b.Epoch }

// readHeld reads a Lease; nil if nobody holds it.
func readHeld(ctx context.Context, client kubernetes.Interface, of cluster.LockInfo) (*coordinationv1.Lease, error) {
	lease, err := client.CoordinationV1().Leases(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("lease %s/%s: %w", of.Namespace, of.Name, err)
	case !cluster.LockOf(lease).Held():
		return nil, nil
	}
	return lease, nil
}

// breakAsRead takes the holder out of a Lease; false if it is not as it was read any more.
func breakAsRead(ctx context.Context, client kubernetes.Interface, lease *coordinationv1.Lease) (bool, error) {
	free(lease)
	_, err := client.CoordinationV1().Leases(lease.Namespace).Update(ctx, lease, metav1.UpdateOptions{FieldManager: FieldManager})
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsConflict(err):
		return false, nil
	}
	return false, fmt.Errorf("lease %s/%s: unlock: %w", lease.Namespace, lease.Name, err)
}
