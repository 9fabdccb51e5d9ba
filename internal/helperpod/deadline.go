package helperpod

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"
)

// errDeadline is the cause of a context that took too long.
var errDeadline = errors.New("deadline exceeded")

// withDeadline is context.WithTimeout by a given clock.
func withDeadline(ctx context.Context, c clock.Clock, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := c.NewTimer(d)
	go func() {
		defer t.Stop()
		select {
		case <-t.C():
			cancel(errDeadline)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// outlive is a context that does not end with ctx, but after a limit, and soon after
// ctx has ended.
func (r *Runner) outlive(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	out, done := withDeadline(context.WithoutCancel(ctx), r.clock, limit)
	hasty, doneHasty := context.WithCancelCause(out)
	stop := context.AfterFunc(ctx, func() {
		t := r.clock.NewTimer(haste)
		defer t.Stop()
		select {
		case <-t.C():
			doneHasty(errDeadline)
		case <-out.Done():
		}
	})
	return hasty, func() { stop(); done(); doneHasty(nil) }
}

// The pauses between the tries of one request.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
)

// persist sends a request until it succeeds, fails for good, or ctx ends. It then
// returns the last answer.
func (r *Runner) persist(ctx context.Context, w Wait, request func() error) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := request()
		if err == nil || !transient(err) || ctx.Err() != nil {
			return err
		}
		w.report("the API server: " + err.Error())
		t := r.clock.NewTimer(pause)
		select {
		case <-t.C():
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// transient says that the same request may succeed later. Whether it took effect is
// not known. The refusal of a log is an unexpected answer to client-go, as its body is
// read by nobody (rest.Request.DoRaw), and a refusal all the same.
func transient(err error) bool {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return false
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsUnexpectedServerError(err) ||
		utilnet.IsConnectionReset(err) || utilnet.IsConnectionRefused(err) || utilnet.IsTimeout(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err)
}
