package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// The rhythm of a wait.
const (
	// recheckEach is how often a condition is judged without a change: some depend
	// on the time.
	recheckEach = 2 * time.Second
	// DefaultHeartbeat is how often an unchanged reason is told again.
	DefaultHeartbeat = 15 * time.Second
)

// WaitOptions say what is waited for, on behalf of whom, and how long.
type WaitOptions struct {
	// Node may be empty in WaitFor.
	Node string
	Step plan.StepID
	// For is what is waited for, as a noun: "the plugin pod to go".
	For string
	// Deadline is how long the wait may take, from its beginning.
	Deadline time.Duration
	Clock    clock.Clock
	// Sink gets event.Waiting; it may be nil.
	Sink event.Sink
	// Heartbeat is DefaultHeartbeat if it is 0.
	Heartbeat time.Duration
}

func (o *WaitOptions) subject() string {
	if o.Node == "" {
		return o.For
	}
	return "node/" + o.Node + ": " + o.For
}

// DeadlineError says that a wait took too long, and why it had not come true.
type DeadlineError struct {
	Node        string
	Step        plan.StepID
	For, Reason string
	After       time.Duration
}

func (e *DeadlineError) Error() string {
	o := WaitOptions{Node: e.Node, For: e.For}
	return fmt.Sprintf("%s: not within %s: %s", o.subject(), e.After.Round(100*time.Millisecond), e.Reason)
}

// hinted adds to a wait that took too long what a person can do about it.
func hinted(err error, hint string) error {
	var late *DeadlineError
	if !errors.As(err, &late) {
		return err
	}
	return fmt.Errorf("%w; %s", err, hint)
}

// Viewer is what Wait sees a node by; Live is one.
type Viewer interface {
	View(node string) (cluster.NodeView, error)
	Changed(node string) <-chan struct{}
}

// Wait returns when cond says "" about the node, and otherwise a *DeadlineError with
// the last reason, the *NodeGoneError of a node that was deleted, or the cause of
// ctx. cond is judged at each change and every two seconds; it is not judged while
// the node cannot be seen, which is a reason of its own.
func Wait(ctx context.Context, live Viewer, o WaitOptions, cond func(cluster.NodeView) (reason string)) error {
	return WaitFor(ctx, o, func() <-chan struct{} { return live.Changed(o.Node) }, func() (string, error) {
		v, err := live.View(o.Node)
		var unseen *UnseenError
		switch {
		case errors.As(err, &unseen):
			return unseen.Reason, nil
		case err != nil:
			return "", err
		}
		return cond(v), nil
	})
}

// WaitFor is Wait for what is not about one node. changed, which may be nil, gives
// a channel that is closed at the next change; cond says why the wait goes on, or
// ends it with an error.
func WaitFor(ctx context.Context, o WaitOptions, changed func() <-chan struct{}, cond func() (reason string, err error)) error {
	if o.Heartbeat == 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	begin := o.Clock.Now()
	deadline := begin.Add(o.Deadline)
	last, told := "", time.Time{}
	for {
		var change <-chan struct{}
		if changed != nil {
			change = changed()
		}
		reason, err := cond()
		if err != nil {
			return fmt.Errorf("%s: %w", o.subject(), err)
		}
		if reason == "" {
			return nil
		}
		now := o.Clock.Now()
		if !now.Before(deadline) {
			return &DeadlineError{Node: o.Node, Step: o.Step, For: o.For, Reason: reason, After: o.Deadline}
		}
		if o.Sink != nil && (reason != last || now.Sub(told) >= o.Heartbeat) {
			o.Sink(event.Waiting{Stamp: event.StampAt(now), Node: o.Node, Step: o.Step, For: o.For, Reason: reason,
				Since: begin, Deadline: deadline, Heartbeat: reason == last})
			last, told = reason, now
		}
		t := o.Clock.NewTimer(min(recheckEach, deadline.Sub(now)))
		select {
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%s: %w (%s)", o.subject(), context.Cause(ctx), reason)
		case <-change:
		case <-t.C():
		}
		t.Stop()
	}
}
