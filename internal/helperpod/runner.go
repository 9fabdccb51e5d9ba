// Package helperpod runs short pods on a node and reads their answers: the probe
// that asks the kubelet, the canary that asks for a device as a workload does, and
// the pull that proves an image before a node is closed.
//
// A pod is created, watched to its end, read by its log and removed again, whatever
// became of it. Its name follows from its purpose and its node, so that a run which
// goes on after a crash finds what was left and replaces it.
package helperpod

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// DefaultTimeout bounds a helper pod from its creation to its end. It covers the
// pull of a small image.
const DefaultTimeout = 2 * time.Minute

// How long the removal of a pod may take: its grace period, the kubelet's clean-up,
// and the deallocation of its claim by kube-controller-manager.
const (
	removal = time.Minute
	// haste is what is left of it once the caller has ended: a person waits at the
	// prompt, and the next run finds the pod by its name.
	haste = 10 * time.Second
)

// Config is what all helper pods of a run have in common.
type Config struct {
	// Namespace is the tool's own. Its pod-security level must allow hostPath
	// volumes ("privileged").
	Namespace string
	// Run is the run's ID, a valid label value; the pods carry it as a label.
	Run string
	// Image is the helper image; its entry point is this program.
	Image string
	// PullSecret names a Secret of Namespace for the images; empty for none.
	PullSecret string
}

// Runner runs helper pods on one cluster. It is safe for concurrent use on
// different nodes; two pods of one purpose on one node replace each other.
type Runner struct {
	client kubernetes.Interface
	clock  clock.Clock
	config Config
}

// New makes a Runner; it sends no request.
func New(client kubernetes.Interface, c clock.Clock, config Config) *Runner {
	return &Runner{client: client, clock: c, config: config}
}

// Wait is how a call bounds its pod and tells what it waits for.
type Wait struct {
	// Timeout is from the pod's creation to its end; DefaultTimeout if 0. Removing
	// the pod afterwards has a deadline of its own.
	Timeout time.Duration
	// Report is told why the call still waits, each time that the reason changes.
	// It may be nil.
	Report func(reason string)
	// KeepLog is given all that a pod printed which did not do what it is for. It may
	// be nil.
	KeepLog func(log string)
}

func (w Wait) timeout() time.Duration {
	if w.Timeout <= 0 {
		return DefaultTimeout
	}
	return w.Timeout
}

func (w Wait) report(reason string) {
	if w.Report != nil {
		w.Report(reason)
	}
}

func (w Wait) keepLog(log string) {
	if w.KeepLog != nil && log != "" {
		w.KeepLog(log)
	}
}

// run brings a job's pod from creation to removal. finish judges the pod that
// ended, with its log. The pod is removed also if something failed or ctx ended,
// and what hinders that is part of the error.
func (r *Runner) run(ctx context.Context, j *job, finish func(context.Context, view, string) error) (err error) {
	work, done := withDeadline(ctx, r.clock, j.wait.timeout())
	defer done()
	// The watches outlive ctx: they tell when the pod is gone.
	s := r.watch(context.WithoutCancel(ctx), j)
	defer s.stop()

	// Only a list that fails is worth telling: one that is answered takes no time.
	if err := r.await(work, func(reason string) {
		if s.trouble() != "" {
			j.wait.report(reason)
		}
	}, s, s.unsynced); err != nil {
		return j.stopped(Refused, err)
	}
	uid, err := r.create(work, j, s)
	if uid != "" {
		defer func() { err = both(err, r.remove(ctx, j, s, uid)) }()
	}
	if err != nil {
		return err
	}
	err = r.await(work, j.wait.report, s, func() (string, error) { return j.until(s.of(uid)) })
	if err == nil {
		var log string
		if log, err = r.log(work, j); err == nil {
			if err = finish(work, s.of(uid), log); err != nil {
				j.wait.keepLog(log)
			}
			return err
		}
	}
	return r.withLog(ctx, j, s.of(uid), err)
}

// both keeps two errors in one line.
func both(err, more error) error {
	if err == nil || more == nil {
		return errors.Join(err, more)
	}
	return fmt.Errorf("%w; and %w", err, more)
}

// job is one pod and what it is for.
type job struct {
	purpose Purpose
	node    string
	pod     corev1.Pod
	wait    Wait
	// driver is the DRA driver that serves the pod; empty if none does.
	driver string
	// until says why the pod has not done yet what it is for; "" when it has.
	until func(view) (reason string, err error)
}

func (j *job) ref() string { return j.pod.Namespace + "/" + j.pod.Name }

// attempt tells the job's own pod from another of the same name.
func (j *job) attempt() string { return j.pod.Annotations[attemptAnnotation] }
