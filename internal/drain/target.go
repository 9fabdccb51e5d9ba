package drain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	firstPause = time.Second
	maxPause   = 10 * time.Second
	// acceptedFor is how long an accepted eviction may take to show in the watch
	// before it is sent again.
	acceptedFor = 10 * time.Second

	severalBudgets = "several budgets cover it, and the eviction API serves no such pod; leave it one budget"
)

// target is one pod that has to go.
type target struct {
	run   *run
	pod   *corev1.Pod // as it was when it became a target
	why   string
	gone  chan struct{} // closed by the run when the watch has lost the pod
	since time.Time

	mu      sync.Mutex
	asked   time.Time // of the first eviction request
	state   string
	budgets []string
	err     error // why it will never go
}

// began is when the pod was first asked to go.
func (t *target) began() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked.IsZero() {
		return t.since
	}
	return t.asked
}

func (t *target) set(state string, budgets []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state, t.budgets = state, budgets
}

func (t *target) fail(state string, budgets []string, err error) {
	t.mu.Lock()
	t.state, t.budgets, t.err = state, budgets, err
	t.mu.Unlock()
	select {
	case t.run.settled <- struct{}{}:
	default:
	}
}

func (t *target) failure() (Remaining, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Remaining{Pod: ref(t.pod), Budgets: t.budgets, Reason: t.state}, t.err
}

// remaining says what the pod is waiting for.
func (t *target) remaining() Remaining {
	now := t.run.watch.find(t.pod)
	t.mu.Lock()
	defer t.mu.Unlock()
	if now != nil && now.DeletionTimestamp != nil {
		return Remaining{Pod: ref(t.pod), Reason: terminating(now, t.run.d.o.Clock.Now())}
	}
	return Remaining{Pod: ref(t.pod), Budgets: t.budgets, Reason: t.state}
}

// terminating says how far a deletion is. The deletion timestamp is the moment at
// which the grace ends.
func terminating(p *corev1.Pod, now time.Time) string {
	s := "terminating"
	if left := p.DeletionTimestamp.Sub(now); left > 0 {
		s += fmt.Sprintf(", up to %s of its grace are left", left.Round(time.Second))
	} else {
		s += fmt.Sprintf(", its grace ended %s ago", (-left).Round(time.Second))
	}
	if len(p.Finalizers) > 0 {
		s += ", held by the finalizers " + strings.Join(p.Finalizers, ", ")
	}
	return s
}

// evict asks until the pod is on its way out, and returns when it is gone, can
// never go, or ctx ends.
func (t *target) evict(ctx context.Context) {
	t.set("not evicted yet", nil)
	pause := firstPause
	for {
		now := t.run.watch.find(t.pod)
		if now == nil || now.DeletionTimestamp != nil {
			t.wait(ctx, 0) // nothing to ask for any more
			return
		}
		err, ok := t.request(ctx)
		if !ok {
			return
		}
		a := judge(err)
		switch a.verdict {
		case accepted:
			t.set("evicted, not terminating yet", nil)
			if !t.wait(ctx, acceptedFor) {
				return
			}
			continue // it is terminating by now, or is asked again
		case elsewhere:
			t.set(a.reason, nil)
		case never:
			names, _ := t.run.budgets.of(ctx, t.pod)
			if ctx.Err() == nil {
				t.fail(a.reason, names, err)
			}
			return
		case blocked, unclear:
			var names []string
			if a.verdict == blocked {
				// Unreadable budgets are named by the reason, in the server's words.
				names, _ = t.run.budgets.of(ctx, t.pod)
			}
			if ctx.Err() != nil {
				return
			}
			if len(names) > 1 {
				t.fail(severalBudgets, names, err)
				return
			}
			t.set(a.reason, names)
		}
		d := max(pause*3/4+rand.N(pause/2), a.after)
		pause = min(2*pause, maxPause)
		if a.verdict != elsewhere {
			rest := t.remaining()
			t.run.tell(Blocked{When: t.run.d.o.Clock.Now(), Pod: ref(t.pod), Budgets: rest.Budgets, Reason: a.reason, Retry: d})
		}
		if !t.wait(ctx, d) {
			return
		}
	}
}

// wait returns false when the pod is gone or ctx has ended, and true after d; a d
// of 0 has no end.
func (t *target) wait(ctx context.Context, d time.Duration) bool {
	var end <-chan time.Time
	if d > 0 {
		timer := t.run.d.o.Clock.NewTimer(d)
		defer timer.Stop()
		end = timer.C()
	}
	select {
	case <-t.gone:
		return false
	case <-ctx.Done():
		return false
	case <-end:
		return true
	}
}

// request sends one eviction, as soon as there is a slot for it. It is for the very
// pod: a successor with the same name is not evicted.
func (t *target) request(ctx context.Context) (err error, sent bool) {
	select {
	case t.run.slots <- struct{}{}:
	case <-t.gone:
		return nil, false
	case <-ctx.Done():
		return nil, false
	}
	defer func() { <-t.run.slots }()
	t.mu.Lock()
	first := t.asked.IsZero()
	now := t.run.d.o.Clock.Now()
	if first {
		t.asked = now
	}
	t.mu.Unlock()
	if first {
		t.run.tell(Evicting{When: now, Pod: ref(t.pod), Why: t.why})
	}
	uid := t.pod.UID
	err = t.run.d.o.Client.PolicyV1().Evictions(t.pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: t.pod.Namespace, Name: t.pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
	return err, ctx.Err() == nil
}

// verdict is what an answer of the eviction API means for the pod.
type verdict int

const (
	accepted  verdict = iota
	elsewhere         // the pod is gone or replaced; the watch will tell
	blocked           // not now: a budget
	unclear           // not now: anything else that passes
	never
)

type answer struct {
	verdict verdict
	reason  string
	after   time.Duration // the server's own wish for the pause
}

// permanent is implemented by errors of the client side that no retry will change.
type permanent interface{ Permanent() bool }

// judge reads an answer (pkg/registry/core/pod/storage/eviction.go, v1.37.2).
func judge(err error) answer {
	if err == nil {
		return answer{verdict: accepted}
	}
	a := answer{verdict: unclear, reason: err.Error()}
	if s, ok := apierrors.SuggestsClientDelay(err); ok {
		a.after = time.Duration(s) * time.Second
	}
	var local permanent
	if errors.As(err, &local) && local.Permanent() {
		a.verdict = never
		return a
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return a // the connection failed; the server may be restarting
	}
	cause := func(c metav1.CauseType) (metav1.StatusCause, bool) { return apierrors.StatusCause(err, c) }
	budget, isBudget := cause(policyv1.DisruptionBudgetCause)
	_, isTerminating := cause(corev1.NamespaceTerminatingCause)
	code := int(status.Status().Code)
	switch {
	case apierrors.IsNotFound(err):
		a.verdict, a.reason = elsewhere, "the server does not know it any more"
	case apierrors.IsConflict(err):
		a.verdict, a.reason = elsewhere, "the server knows another pod by its name"
	case isBudget: // 429 mostly; 403 if the budget's own state is broken
		a.verdict = blocked
		if budget.Message != "" {
			a.reason = budget.Message
		}
	case strings.Contains(status.Status().Message, "more than one PodDisruptionBudget"):
		a.verdict, a.reason = never, severalBudgets
	case apierrors.IsForbidden(err) && isTerminating:
		// Evictions cannot be created any more there; the namespace's own deletion
		// removes the pod.
		a.reason = "its namespace is terminating"
	case apierrors.IsTooManyRequests(err):
		a.reason = "the API server is busy: " + err.Error()
	case code >= http.StatusInternalServerError || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err):
	default:
		a.verdict = never
	}
	return a
}
