package helperpod

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/gate"
)

// logLimit bounds what is read of a log, in bytes. A report of a node with hundreds
// of pods is far below it.
const logLimit = 4 << 20

// await judges cond at each change until it says "" or fails. Reasons are reported
// as they change.
func (r *Runner) await(ctx context.Context, report func(string), s *sighting, cond func() (reason string, err error)) error {
	last := ""
	for {
		change := s.next()
		reason, err := cond()
		if err != nil || reason == "" {
			return err
		}
		if reason != last {
			report(reason)
			last = reason
		}
		select {
		case <-change:
		case <-ctx.Done():
			return &stoppedError{reason: reason, cause: context.Cause(ctx)}
		}
	}
}

// stoppedError is a wait that its context ended.
type stoppedError struct {
	reason string
	cause  error
}

func (e *stoppedError) Error() string { return e.reason + ": " + e.cause.Error() }
func (e *stoppedError) Unwrap() error { return e.cause }

// create sends the pod, replacing what an earlier run left under its name. It
// returns the pod's UID also with an error, if the pod was made all the same.
func (r *Runner) create(ctx context.Context, j *job, s *sighting) (types.UID, error) {
	pods := r.client.CoreV1().Pods(j.pod.Namespace)
	for {
		var made *corev1.Pod
		err := r.persist(ctx, j.wait, func() (err error) {
			made, err = pods.Create(ctx, &j.pod, metav1.CreateOptions{FieldManager: gate.FieldManager})
			return err
		})
		switch {
		case err == nil:
			return made.UID, nil
		case apierrors.IsAlreadyExists(err):
			uid, err := r.replace(ctx, j, s)
			if err != nil || uid != "" {
				return uid, err
			}
		case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !transient(err):
			return "", j.failed(Refused, "the pod was refused", err)
		default:
			// The answer got lost, or came too late. The pod may be there.
			return r.find(ctx, j), j.ctxError(ctx, Refused, "the pod could not be created", err)
		}
	}
}

// replace removes the pod that has the job's name. If that is the job's own, made by
// a create whose answer got lost, its UID is returned instead.
func (r *Runner) replace(ctx context.Context, j *job, s *sighting) (own types.UID, err error) {
	var there *corev1.Pod
	err = r.persist(ctx, j.wait, func() (err error) {
		there, err = r.client.CoreV1().Pods(j.pod.Namespace).Get(ctx, j.pod.Name, metav1.GetOptions{})
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", j.ctxError(ctx, Refused, "a pod of this name cannot be read", err)
	case there.Annotations[attemptAnnotation] == j.attempt():
		return there.UID, nil
	case there.Labels[gate.ManagedByLabel] != gate.ManagedBy:
		return "", j.failed(Foreign, "a pod of this name is there already, and not made by dramigrate", nil)
	}
	j.wait.report(fmt.Sprintf("removing the pod of an earlier try, of run %s", there.Labels[RunLabel]))
	return "", r.remove(ctx, j, s, there.UID)
}

// find looks for the job's own pod when it is not known whether it was made. It asks
// although ctx may have ended.
func (r *Runner) find(ctx context.Context, j *job) types.UID {
	ctx, done := r.outlive(ctx, haste)
	defer done()
	var there *corev1.Pod
	if err := r.persist(ctx, j.wait, func() (err error) {
		there, err = r.client.CoreV1().Pods(j.pod.Namespace).Get(ctx, j.pod.Name, metav1.GetOptions{})
		return err
	}); err != nil || there.Annotations[attemptAnnotation] != j.attempt() {
		return ""
	}
	return there.UID
}

// remove deletes a pod and waits until it and its claims are gone, also if ctx has
// ended.
func (r *Runner) remove(ctx context.Context, j *job, s *sighting, uid types.UID) error {
	ctx, done := r.outlive(ctx, removal)
	defer done()
	err := r.persist(ctx, j.wait, func() error {
		// Not a force delete: the kubelet has to unprepare the pod's claims.
		return r.client.CoreV1().Pods(j.pod.Namespace).Delete(ctx, j.pod.Name, metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(uid)),
		})
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // gone, or another pod by now
		s.lost(uid)
	case err != nil:
		return j.failed(Leftover, "the pod could not be deleted", err)
	}
	err = r.await(ctx, j.wait.report, s, func() (string, error) { return r.left(ctx, j, s.of(uid)) })
	if err != nil {
		return j.failed(Leftover, "deleted, and not gone in time", err)
	}
	return nil
}

// left says what is left of a pod: itself, or a claim that was made for it.
func (r *Runner) left(ctx context.Context, j *job, v view) (string, error) {
	if !v.gone {
		return orTrouble(v, "the pod to be removed"), nil
	}
	if j.driver == "" {
		return "", nil
	}
	for _, name := range slices.Sorted(maps.Keys(v.claims)) {
		if c := v.claims[name]; !c.gone {
			what := "claim %s to be deleted"
			if c.newest.Status.Allocation != nil {
				what = "claim %s to be deallocated"
			}
			return orTrouble(v, fmt.Sprintf(what, c.newest.Namespace+"/"+name)), nil
		}
	}
	// The watches are not in step: one may tell of the pod's end before another
	// tells of the claim that the pod was bound with.
	if v.pod == nil || v.pod.Status.ExtendedResourceClaimStatus == nil {
		return "", nil
	}
	name := v.pod.Status.ExtendedResourceClaimStatus.ResourceClaimName
	if _, seen := v.claims[name]; seen || name == "" {
		return "", nil
	}
	err := r.persist(ctx, j.wait, func() error {
		_, err := r.client.ResourceV1().ResourceClaims(j.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return fmt.Sprintf("claim %s/%s to be seen", j.pod.Namespace, name), err
}

// log reads the log of the pod's container.
func (r *Runner) log(ctx context.Context, j *job) (string, error) {
	var text []byte
	err := r.persist(ctx, j.wait, func() (err error) {
		answer := r.client.CoreV1().Pods(j.pod.Namespace).GetLogs(j.pod.Name, &corev1.PodLogOptions{
			Container:  container,
			LimitBytes: ptr.To[int64](logLimit),
		}).Do(ctx)
		if text, err = answer.Raw(); apierrors.IsForbidden(err) {
			return answer.Error() // which also reads who may not do what
		}
		return err
	})
	if err != nil {
		return "", j.ctxError(ctx, NoAnswer, "the pod's log cannot be read", err)
	}
	return string(text), nil
}

// logTail is how much of a log goes into an error, in bytes.
const logTail = 2 << 10

// withLog makes an error of a pod that did not do what it is for, and adds what the
// pod printed so far.
func (r *Runner) withLog(ctx context.Context, j *job, v view, err error) error {
	failure := j.fromWait(v, err)
	if v.gone || v.pod == nil || !ran(v.pod) || failure.Kind == NoAnswer || failure.Kind == Interrupted {
		return failure
	}
	ctx, done := r.outlive(ctx, haste)
	defer done()
	if text, err := r.log(ctx, j); err == nil {
		j.wait.keepLog(text)
		failure.Log = tail(text)
	}
	return failure
}

// ran says that the container has begun at least once, so that there is a log.
func ran(p *corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running != nil || s.State.Terminated != nil {
			return true
		}
	}
	return false
}

func tail(log string) string {
	log = strings.TrimSpace(log)
	if len(log) > logTail {
		log = "…" + strings.ToValidUTF8(log[len(log)-logTail:], "")
	}
	return log
}
