package nvml

import (
	"context"
	"fmt"
	"time"
)

// asker makes the calls that belong together, such as those about one GPU, and keeps
// what failed. It is for one goroutine.
type asker struct {
	ctx  context.Context
	lib  *Library
	errs []Error
	// hung is the call that did not come back. No other is made after it: it would
	// wait for the same GPU, and its thread would be lost too.
	hung string
}

func (l *Library) asker(ctx context.Context) *asker { return &asker{ctx: ctx, lib: l} }

// answer makes one call for one part of the report. If it fails, the part is named in
// the errors.
//
// The call has a goroutine of its own, because nothing can end a thread that waits in
// the driver: past the deadline it is left behind, and what it may still answer with
// nobody reads.
func answer[T any](a *asker, part, call string, timeout time.Duration, f func() (T, Code)) (T, bool) {
	var none T
	if a.hung != "" {
		a.fail(Error{Kind: KindTimeout, Part: part, Call: call, Detail: "not asked, because " + a.hung + " hangs"})
		return none, false
	}
	type result struct {
		value T
		code  Code
	}
	done := make(chan result, 1)
	go func() {
		value, code := f()
		done <- result{value, code}
	}()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	detail := ""
	select {
	case r := <-done:
		if r.code != codeSuccess {
			a.fail(Error{Kind: r.code.Kind(), Part: part, Call: call, Code: r.code})
			return none, false
		}
		return r.value, true
	case <-deadline.C:
		detail = fmt.Sprintf("no answer within %s", timeout)
	case <-a.ctx.Done():
		detail = fmt.Sprintf("no answer when the look ended: %v", context.Cause(a.ctx))
	}
	a.hung = call
	a.lib.hung.Store(true)
	a.fail(Error{Kind: KindTimeout, Part: part, Call: call, Detail: detail})
	return none, false
}

func (a *asker) fail(e Error) { a.errs = append(a.errs, e) }

// take hands out the errors since the last take, so that each object has its own.
func (a *asker) take() []Error {
	errs := a.errs
	a.errs = nil
	return errs
}
