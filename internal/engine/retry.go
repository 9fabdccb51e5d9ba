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

// The tries of one write. They last about 15 s in all: longer than a restart of an
// API server behind a load balancer, shorter than a lock.
const (
	writeTries = 9
	firstPause = 100 * time.Millisecond
	maxPause   = 4 * time.Second
)

// retry calls try until it succeeds, says that no more tries are of use, or has
// been called writeTries times. Pauses double and vary.
func retry(ctx context.Context, c clock.Clock, try func() (again bool, err error)) error {
	pause := firstPause
	for n := 1; ; n++ {
		again, err := try()
		if err == nil || !again {
			return err
		}
		if n == writeTries {
			return fmt.Errorf("given up after %d tries: %w", n, err)
		}
		t := c.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%w (last answer: %w)", context.Cause(ctx), err)
		case <-t.C():
		}
		pause = min(2*pause, maxPause)
	}
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
