package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
)

// fakeView is a Viewer that a test changes by hand.
type fakeView struct {
	mu      sync.Mutex
	err     error
	changed chan struct{}
}

func (v *fakeView) View(string) (cluster.NodeView, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return cluster.NodeView{}, v.err
}

func (v *fakeView) Changed(string) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// change lets the view give err from now on, and wakes whoever waits.
func (v *fakeView) change(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
	close(v.changed)
	v.changed = make(chan struct{})
}

func newFakeView() *fakeView { return &fakeView{changed: make(chan struct{})} }

func waitOptions(sink event.Sink) WaitOptions {
	return WaitOptions{Node: "gpu-7", Step: "drain", For: "the plugin pod to go", Deadline: time.Minute, Clock: clock.RealClock{}, Sink: sink}
}

func TestWaitEndsAtTheChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, begin := newFakeView(), time.Now()
		go func() {
			time.Sleep(500 * time.Millisecond)
			v.change(nil)
		}()
		err := Wait(t.Context(), v, waitOptions(nil), func(cluster.NodeView) string {
			if time.Since(begin) == 500*time.Millisecond {
				return ""
			}
			return "it is there"
		})
		if err != nil || time.Since(begin) != 500*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}

// Some conditions come true by the time alone.
func TestWaitJudgesWithoutChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := Wait(t.Context(), newFakeView(), waitOptions(nil), func(cluster.NodeView) string {
			if time.Since(begin) >= 31*time.Second {
				return ""
			}
			return "the slices are kept for 30 s"
		})
		if took := time.Since(begin); err != nil || took < 31*time.Second || took > 33*time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestWaitDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := Wait(t.Context(), newFakeView(), waitOptions(nil), func(cluster.NodeView) string { return "pod kube-system/x is terminating" })
		var late *DeadlineError
		if !errors.As(err, &late) || time.Since(begin) != time.Minute || late.Step != "drain" {
			t.Fatalf("%v after %s", err, time.Since(begin))
		}
		if want := "node/gpu-7: the plugin pod to go: not within 1m0s: pod kube-system/x is terminating"; err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	})
}

func TestWaitTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var told []string
		sink := func(e event.Event) {
			w := e.(event.Waiting)
			what := w.Reason
			if w.Heartbeat {
				what = "again " + what
			}
			told = append(told, w.When.Sub(begin).String()+" "+what)
			if w.Since != begin || w.Deadline != begin.Add(time.Minute) || w.For != "the plugin pod to go" || w.Node != "gpu-7" {
				t.Errorf("%+v", w)
			}
		}
		err := Wait(t.Context(), newFakeView(), waitOptions(sink), func(cluster.NodeView) string {
			switch since := time.Since(begin); {
			case since < 20*time.Second:
				return "one"
			case since < 40*time.Second:
				return "two"
			}
			return ""
		})
		want := []string{"0s one", "16s again one", "20s two", "36s again two"} // judged each 2 s, told again from 15 s on
		if err != nil || !slices.Equal(told, want) {
			t.Errorf("%v: %q", err, told)
		}
	})
}

// What cannot be seen is never taken for fine.
func TestWaitUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newFakeView()
		v.err = &UnseenError{Reason: "cannot watch pods of node gpu-7: forbidden"}
		go func() {
			time.Sleep(10 * time.Second)
			v.change(nil)
		}()
		begin := time.Now()
		var told event.Waiting
		err := Wait(t.Context(), v, waitOptions(func(e event.Event) { told = e.(event.Waiting) }), func(cluster.NodeView) string { return "" })
		if err != nil || time.Since(begin) != 10*time.Second || !strings.Contains(told.Reason, "forbidden") {
			t.Errorf("%v after %s, told %q", err, time.Since(begin), told.Reason)
		}
	})
}

func TestWaitEndsWithTheNodeOrTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newFakeView()
		v.err = &NodeGoneError{Node: "gpu-7"}
		var gone *NodeGoneError
		if err := Wait(t.Context(), v, waitOptions(nil), func(cluster.NodeView) string { return "x" }); !errors.As(err, &gone) {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel(ErrLockLost)
		}()
		err := Wait(ctx, newFakeView(), waitOptions(nil), func(cluster.NodeView) string { return "x" })
		if !errors.Is(err, ErrLockLost) || !strings.Contains(err.Error(), "node/gpu-7: the plugin pod to go") {
			t.Errorf("got %v", err)
		}
	})
}
