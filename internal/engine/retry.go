package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"
)

// The tries of one write. Those at a server that fails last about 15 s in all: longer
// than a restart of an API server behind a load balancer, shorter than a lock. A
// conflict says that the server is well and somebody else was faster; it is tried
// again soon, and more often.
const (
	writeTries    = 9
	firstPause    = 100 * time.Millisecond
	maxPause      = 4 * time.Second
	conflictTries = 20
	conflictPause = 100 * time.Millisecond
)

// retry calls try until it succeeds, says that no more tries are of use, or has
// failed too often. Pauses double and vary.
func retry(ctx context.Context, c clock.Clock, try func() (again bool, err error)) error {
	pause := firstPause
	for failed, conflicts := 0, 0; ; {
		again, err := try()
		if err == nil || !again {
			return err
		}
		d := conflictPause
		if lostRace(err) {
			conflicts++
		} else {
			failed++
			d, pause = pause, min(2*pause, maxPause)
		}
		if failed == writeTries || conflicts == conflictTries {
			return fmt.Errorf("given up after %d tries: %w", failed+conflicts, err)
		}
		t := c.NewTimer(d/2 + rand.N(d))
		select {
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%w (last answer: %w)", context.Cause(ctx), err)
		case <-t.C():
		}
	}
}

// lostRace says that somebody else changed the object between our read and our
// write.
func lostRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || testFailed(err)
}

// transient says that a request may succeed if it is sent again. Whether it took
// effect is not known; the caller looks.
func transient(err error) bool {
	var fence *FenceError
	if err == nil || errors.As(err, &fence) || errors.Is(err, context.Canceled) {
		return false
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		apierrors.IsUnexpectedServerError(err) ||
		utilnet.IsConnectionReset(err) || utilnet.IsConnectionRefused(err) || utilnet.IsTimeout(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err)
}
