package helperpod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is what went wrong with a helper pod.
type Kind string

// The kinds, in the order in which a pod meets them.
const (
	// Refused: the API server did not take the pod.
	Refused Kind = "Refused"
	// Foreign: somebody else's pod has the name.
	Foreign Kind = "Foreign"
	// NotScheduled: the scheduler did not bind the pod.
	NotScheduled Kind = "NotScheduled"
	// ServedByPlugin: the pod was bound without DRA: the device plugin still
	// serves the resource on the node.
	ServedByPlugin Kind = "ServedByPlugin"
	// NotAllocated: the pod was bound, and the claim that its status names does
	// not hold what it asks for.
	NotAllocated Kind = "NotAllocated"
	// NoImage: the image was not pulled.
	NoImage Kind = "NoImage"
	// NotPrepared: the driver did not prepare the claim's devices.
	NotPrepared Kind = "NotPrepared"
	// RemnantOfPlugin: the kubelet refuses to start the container because it still
	// remembers an allocation of the device plugin that left.
	RemnantOfPlugin Kind = "RemnantOfPlugin"
	// NotMounted: a file or folder of the node could not be shown to the pod.
	NotMounted Kind = "NotMounted"
	// NotStarted: the container was not started for another reason.
	NotStarted Kind = "NotStarted"
	// Failed: the pod did not end, or not well.
	Failed Kind = "Failed"
	// Deleted: the pod was deleted before it had ended.
	Deleted Kind = "Deleted"
	// NoAnswer: the pod ended and its log does not hold the answer.
	NoAnswer Kind = "NoAnswer"
	// Incomplete: the answer says that a part of it is unknown.
	Incomplete Kind = "Incomplete"
	// Unverifiable: what the container was given cannot be compared with its claim.
	Unverifiable Kind = "Unverifiable"
	// DevicesDiffer: the container sees other devices than its claim holds.
	DevicesDiffer Kind = "DevicesDiffer"
	// Leftover: the pod did what it is for, and it or its claim did not go away.
	Leftover Kind = "Leftover"
	// Interrupted: the caller's context ended.
	Interrupted Kind = "Interrupted"
)

// Error says why a helper pod did not do what it is for.
type Error struct {
	Kind    Kind
	Purpose Purpose
	Node    string
	// Pod is "namespace/name". The pod is gone by the time the error is returned,
	// unless Kind is Leftover; its events stay for an hour.
	Pod string
	// Detail is what was seen, with the words of whoever refused.
	Detail string
	// Want and Got are the UUIDs of the claim's devices and those that the container
	// listed, both sorted, with Kind DevicesDiffer.
	Want, Got []string
	// Unmounted are the volumes that could not be mounted, with Kind NotMounted, sorted;
	// none if the kubelet did not name them.
	Unmounted []string
	// Next is the next command to type, or what to do in one line.
	Next string
	// Log is the end of the pod's log, if it had begun to print.
	Log string
	// Err is the API server's answer, or the end of the context; it may be nil.
	Err error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "node/%s: %s pod %s: %s", e.Node, e.Purpose, e.Pod, e.Detail)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Log != "" {
		fmt.Fprintf(&b, "; its log ends: %s", e.Log)
	}
	if e.Next != "" {
		fmt.Fprintf(&b, "; next: %s", e.Next)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of the first helper pod error in err; empty if there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func (j *job) failed(kind Kind, detail string, err error) *Error {
	if kind == NotStarted && strings.Contains(detail, remnant) {
		kind = RemnantOfPlugin
	}
	return &Error{
		Kind: kind, Purpose: j.purpose, Node: j.node, Pod: j.ref(), Detail: detail,
		Next: j.next(kind, err), Err: err,
	}
}

// ctxError is failed for a request that may have failed because ctx ended.
func (j *job) ctxError(ctx context.Context, kind Kind, detail string, err error) *Error {
	if ctx.Err() == nil {
		return j.failed(kind, detail, err)
	}
	return j.stopped(kind, &stoppedError{reason: fmt.Sprintf("%s: %v", detail, err), cause: context.Cause(ctx)})
}

// fromWait makes an Error of what ended a wait for the pod. A deadline becomes the
// kind of what the pod was stuck at.
func (j *job) fromWait(v view, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	kind, _ := stage(v)
	return j.stopped(kind, err).naming(v)
}

// naming adds the volumes that a pod waits for.
func (e *Error) naming(v view) *Error {
	if e.Kind == NotMounted {
		e.Unmounted = slices.Sorted(maps.Keys(v.unmounted))
		if len(e.Unmounted) > 1 { // what is quoted is of one of them
			e.Detail += "; volumes that could not be mounted: " + strings.Join(e.Unmounted, ", ")
		}
	}
	return e
}

// stopped makes an Error of the given kind of a wait that its context ended, unless
// it was the caller's context.
func (j *job) stopped(kind Kind, err error) *Error {
	var stopped *stoppedError
	switch {
	case !errors.As(err, &stopped):
		return j.failed(kind, "the wait failed", err)
	case errors.Is(stopped.cause, errDeadline):
		return j.failed(kind, fmt.Sprintf("not within %s: %s", j.wait.timeout(), stopped.reason), nil)
	default:
		return j.failed(Interrupted, "interrupted: "+stopped.reason, stopped.cause)
	}
}
