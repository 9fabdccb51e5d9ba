package engine

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type fakeHolder struct {
	ctx context.Context
	mu  sync.Mutex
	err error
}

func (h *fakeHolder) Alive() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

func (h *fakeHolder) Context() context.Context { return h.ctx }

func (h *fakeHolder) lose(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

type tripFunc func(*http.Request) (*http.Response, error)

func (f tripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// body remembers that it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

func request(t *testing.T, method string) (*http.Request, *body) {
	t.Helper()
	b := &body{Reader: strings.NewReader("{}")}
	r, err := http.NewRequestWithContext(t.Context(), method, "https://api/api/v1/nodes/gpu-7?dryRun=All", b)
	if err != nil {
		t.Fatal(err)
	}
	r.Body = b
	return r, b
}

func TestFence(t *testing.T) {
	dead := errors.New("lock lost")
	alive := func() *fakeHolder { return &fakeHolder{ctx: context.Background()} }
	for name, tc := range map[string]struct {
		method string
		held   []*fakeHolder
		want   error // nil: the request is sent
	}{
		"read without a lock":             {method: http.MethodGet},
		"head without a lock":             {method: http.MethodHead},
		"options without a lock":          {method: http.MethodOptions},
		"patch without a lock":            {method: http.MethodPatch, want: ErrNoLock},
		"create without a lock":           {method: http.MethodPost, want: ErrNoLock},
		"update without a lock":           {method: http.MethodPut, want: ErrNoLock},
		"delete without a lock":           {method: http.MethodDelete, want: ErrNoLock},
		"patch with a lock":               {method: http.MethodPatch, held: []*fakeHolder{alive()}},
		"create with two locks":           {method: http.MethodPost, held: []*fakeHolder{alive(), alive()}},
		"create with one of two lost":     {method: http.MethodPost, held: []*fakeHolder{alive(), {ctx: context.Background(), err: dead}}, want: dead},
		"read with a lost lock":           {method: http.MethodGet, held: []*fakeHolder{{ctx: context.Background(), err: dead}}},
		"delete with a lost lock is kept": {method: http.MethodDelete, held: []*fakeHolder{{ctx: context.Background(), err: dead}}, want: dead},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFence()
			for _, h := range tc.held {
				f.hold(h)
			}
			sent := false
			rt := f.Wrap(tripFunc(func(*http.Request) (*http.Response, error) {
				sent = true
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			}))
			req, b := request(t, tc.method)
			resp, err := rt.RoundTrip(req)
			if tc.want == nil {
				if err != nil || !sent {
					t.Fatalf("sent %v, error %v", sent, err)
				}
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			var fence *FenceError
			if sent || !errors.Is(err, tc.want) || !errors.As(err, &fence) {
				t.Fatalf("sent %v, error %v", sent, err)
			}
			if fence.Method != tc.method || fence.Path != "/api/v1/nodes/gpu-7" || !b.closed {
				t.Errorf("%+v, body closed %v", fence, b.closed)
			}
		})
	}
}

func TestFenceDrop(t *testing.T) {
	f := NewFence()
	h := &fakeHolder{ctx: context.Background()}
	f.hold(h)
	if err := f.Check(); err != nil {
		t.Error(err)
	}
	f.drop(h)
	if err := f.Check(); !errors.Is(err, ErrNoLock) {
		t.Errorf("got %v", err)
	}
}

// A request that is under way when the lock is lost is given up; one whose run is
// merely interrupted is not.
func TestFenceCancelsInFlight(t *testing.T) {
	for name, lost := range map[string]error{"lost": ErrLockLost, "interrupted": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				h := &fakeHolder{ctx: ctx}
				f := NewFence()
				f.hold(h)
				rt := f.Wrap(tripFunc(func(r *http.Request) (*http.Response, error) {
					select {
					case <-r.Context().Done():
						return nil, context.Cause(r.Context())
					case <-time.After(time.Minute):
						return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
					}
				}))
				go func() {
					time.Sleep(time.Second)
					h.lose(lost)
					cancel()
				}()
				req, _ := request(t, http.MethodPatch)
				resp, err := rt.RoundTrip(req)
				if !errors.Is(err, lost) {
					t.Fatalf("got %v", err)
				}
				if err == nil {
					_ = resp.Body.Close()
				}
			})
		})
	}
}
