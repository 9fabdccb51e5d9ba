package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// ErrNoLock is the cause of a FenceError when no lock is held at all.
var ErrNoLock = errors.New("no lock is held")

// FenceError is the refusal to send a request that would change something.
type FenceError struct {
	Method, Path string
	Cause        error
}

func (e *FenceError) Error() string {
	return fmt.Sprintf("%s %s not sent: %v", e.Method, e.Path, e.Cause)
}

func (e *FenceError) Unwrap() error { return e.Cause }

// Permanent says that sending again is of no use: the run has to stop.
func (e *FenceError) Permanent() bool { return true }

// holder is what a Fence needs of a Lock.
type holder interface {
	// Alive compares the clock itself, at the time of the call.
	Alive() error
	Context() context.Context
}

// Fence lets requests that change something pass only while locks are held, and
// every one of them is alive. It is the last thing that a request passes, below
// all retries of the client, so that no retry gets round it.
//
// Locks are renewed through a client of their own that has no fence.
type Fence struct {
	mu   sync.Mutex
	held map[holder]struct{}
}

// NewFence makes a fence that lets nothing pass yet.
func NewFence() *Fence { return &Fence{held: map[holder]struct{}{}} }

// Hold adds a lock.
func (f *Fence) Hold(l *Lock) { f.hold(l) }

// Drop takes a lock out again. It is dropped before it is released.
func (f *Fence) Drop(l *Lock) { f.drop(l) }

func (f *Fence) hold(h holder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[h] = struct{}{}
}

func (f *Fence) drop(h holder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.held, h)
}

// Check says whether a change may be sent now: nil, ErrNoLock, or why a lock is
// not alive.
func (f *Fence) Check() error {
	_, err := f.check()
	return err
}

func (f *Fence) check() ([]holder, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.held) == 0 {
		return nil, ErrNoLock
	}
	held := make([]holder, 0, len(f.held))
	for h := range f.held {
		if err := h.Alive(); err != nil {
			return nil, err
		}
		held = append(held, h)
	}
	return held, nil
}

// Wrap is for rest.Config.Wrap.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper {
	return &fencedTransport{fence: f, next: next}
}

type fencedTransport struct {
	fence *Fence
	next  http.RoundTripper
}

// RoundTrip sends reads as they are. A change is checked, and cancelled on the way
// if a lock is lost meanwhile: a request that hangs in a connection must not reach
// the server when somebody else holds the lock. A dry run counts as a change; it
// is sent by plans through a client without a fence.
func (t *fencedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, "":
		return t.next.RoundTrip(req)
	}
	held, err := t.fence.check()
	if err != nil {
		// RoundTripper's contract: the body is closed on every return.
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &FenceError{Method: req.Method, Path: req.URL.Path, Cause: err}
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stops := make([]func() bool, 0, len(held))
	for _, h := range held {
		stops = append(stops, context.AfterFunc(h.Context(), func() {
			// The holder's own context also ends when the run is interrupted;
			// then the request's context decides, as it does without a fence.
			if err := h.Alive(); err != nil {
				cancel(err)
			}
		}))
	}
	done := func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		done()
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// The body is a connection of its own now, and must stay writable.
		return resp, nil
	}
	resp.Body = &closeHook{ReadCloser: resp.Body, hook: done}
	return resp, nil
}

// WrappedRoundTripper lets client-go look through the fence (net.RoundTripperWrapper).
func (t *fencedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

type closeHook struct {
	io.ReadCloser
	once sync.Once
	hook func()
}

func (c *closeHook) Close() error {
	err := c.ReadCloser.Close()
	c.once.Do(c.hook)
	return err
}
