package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/words"
)

// sharedLockWait is how long a pool's run waits for another that edits shared
// objects: it holds their lock for seconds.
const sharedLockWait = 2 * time.Minute

// session is one execution of a plan, from its lock to the journal's last entry.
type session struct {
	*Engine
	plan    *plan.Plan
	payload Payload
	id      string // the run's ID
	lock    *Lock
	started time.Time
	// begun is set before the first change, so that an error says whether
	// something has to be resumed.
	begun atomic.Bool
}

// run takes the lock, makes sure that the plan is still true, records the run, and
// executes do under the lock.
func (s *session) run(ctx context.Context, pool string, do func(context.Context) error) error {
	if s.plan.Operation == plan.Prepare || s.plan.Operation == plan.Rollback && s.namespaceGone(ctx) {
		// The Lease needs a place to be. This is the one write before the lock. A rollback
		// works from the nodes' own records, whatever became of the namespace.
		if err := s.ensureNamespace(ctx); err != nil {
			return err
		}
		if s.plan.Operation == plan.Rollback {
			s.emit(event.Warned{Stamp: s.stamp(), Message: fmt.Sprintf(
				"namespace/%s was gone, with the journals in it, and is made again: the rollback goes by what the nodes record", s.deps.Namespace)})
		}
	}
	journal, _, err := s.journals.Load(ctx, pool)
	if err != nil {
		return err
	}
	marked, err := s.nodeEpoch(ctx)
	if err != nil {
		return err
	}
	lock, err := s.acquire(ctx, pool, max(marked, MaxEpoch(journal)), s.deps.LockWait)
	if err != nil {
		return err
	}
	s.lock = lock
	s.fence.Hold(lock)
	defer s.release(ctx, lock)

	ctx = lock.Context()
	if err := s.alone(ctx, pool); err != nil {
		return err
	}
	if err := s.stillTrue(ctx, pool); err != nil {
		return err
	}
	if err := s.recordStart(ctx, pool); err != nil {
		return err
	}
	err = do(ctx)
	return s.recordEnd(ctx, pool, err)
}

// acquire takes the Lease of a pool, or of the shared objects (pool "").
func (s *session) acquire(ctx context.Context, pool string, minEpoch int64, wait time.Duration) (*Lock, error) {
	lock, err := s.acquireLease(ctx, cluster.RecordName(pool), minEpoch, wait)
	if apierrors.IsNotFound(err) {
		return nil, &RefusedError{Reason: fmt.Sprintf("namespace/%s does not exist: the cluster is not prepared", s.deps.Namespace),
			Hint: "run `dramigrate prepare` first"}
	}
	return lock, err
}

func (s *session) acquireLease(ctx context.Context, name string, minEpoch int64, wait time.Duration) (*Lock, error) {
	return Acquire(ctx, LockOptions{
		Client: s.bare, Namespace: s.deps.Namespace, Name: name,
		Holder: s.deps.Holder, TTL: s.deps.LockTTL, Wait: wait, MinEpoch: minEpoch,
		Info: map[string]string{
			"operation": string(s.plan.Operation), "run": s.id, "plan-digest": s.plan.Digest,
			"version": s.deps.ToolVersion, "started": s.started.UTC().Format(time.RFC3339),
		},
		Clock: s.deps.Clock, Sink: s.deps.Sink,
	})
}

func (s *session) release(ctx context.Context, lock *Lock) {
	ctx, cancel := s.detached(ctx)
	defer cancel()
	s.fence.Drop(lock)
	if err := lock.Release(ctx); err != nil {
		s.emit(event.Warned{Stamp: s.stamp(), Message: fmt.Sprintf("%v; it expires by itself", err)})
	}
}

// stillTrue compares the plan with one that is made now that nobody else can run.
func (s *session) stillTrue(ctx context.Context, pool string) error {
	if s.payload.Replan == nil {
		return nil
	}
	now, err := s.payload.Replan(ctx)
	if err != nil {
		return err
	}
	var runs []cluster.RunRecord
	if s.payload.Saved {
		journal, _, err := s.journals.Load(ctx, pool)
		if err != nil {
			return err
		}
		runs = journal.Runs
	}
	switch look := plan.Compare(s.plan, now, runs); {
	case look.Runs():
		return nil
	case look.Verdict == plan.Refused:
		return &RefusedError{Reason: few(look.Reasons), Hint: "make a new plan"}
	default:
		return &RefusedError{Reason: "the cluster has changed since the plan was made: " + few(look.Reasons), Hint: "look at a new plan"}
	}
}

func (s *session) recordStart(ctx context.Context, pool string) error {
	resumes := ""
	_, err := s.journals.Update(ctx, pool, s.lock.Epoch(), func(j *cluster.Journal) error {
		resumes = ""
		if last := LastRun(j); last != nil && last.Ended == nil {
			resumes = last.ID
		}
		if s.plan.Pool != nil {
			j.Selector = s.plan.Pool.Selector
			for _, n := range s.plan.Pool.Nodes {
				j.Nodes = append(j.Nodes, n.Name)
			}
			slices.Sort(j.Nodes)
			j.Nodes = slices.Compact(j.Nodes)
		}
		into := ""
		if s.plan.Into != nil {
			into = s.plan.Into.Name
			j.Into = &cluster.PoolRef{Name: into, Selector: s.plan.Into.Selector}
		}
		StartRun(j, cluster.RunRecord{
			ID: s.id, Operation: string(s.plan.Operation), Into: into, Who: s.deps.Holder, ToolVersion: s.deps.ToolVersion,
			Epoch: s.lock.Epoch(), PlanDigest: s.plan.Digest, Started: metav1.NewTime(s.started),
			HelperImage: s.plan.Settings.HelperImage, PullSecret: s.plan.Settings.PullSecret,
			RuntimeClass: s.plan.Settings.RuntimeClass, DriverRoot: s.plan.Settings.DriverRoot,
		})
		return nil
	})
	if err != nil {
		return err
	}
	s.emit(event.RunStarted{Stamp: s.stamp(), Run: s.id, Plan: s.plan, Resumes: resumes})
	return nil
}

// recordEnd writes how the run ended and turns its error into one that says what to
// do next. A run that lost its lock writes nothing more.
func (s *session) recordEnd(ctx context.Context, pool string, err error) error {
	outcome, message := event.OutcomeDone, ""
	var refused *RefusedError
	switch {
	case err == nil:
	case errors.As(err, &refused) && !s.begun.Load():
		outcome, message = event.OutcomeRefused, err.Error()
	default:
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
			err = cause
		}
		outcome, message = event.OutcomeStopped, err.Error()
		err = &StoppedError{Err: err, Hint: s.hint()}
	}
	if s.lock.Alive() == nil {
		done, cancel := s.detached(ctx)
		defer cancel()
		_, jerr := s.journals.Update(done, pool, s.lock.Epoch(), func(j *cluster.Journal) error {
			if outcome == event.OutcomeDone && s.plan.Operation == plan.Rollback {
				j.Nodes, j.Into = nil, nil
			}
			EndRun(j, s.id, outcome, message, s.deps.Clock.Now())
			return nil
		})
		if jerr != nil && err == nil {
			err = jerr
		}
	}
	s.emit(event.RunDone{Stamp: s.stamp(), Outcome: outcome, Message: message, Took: s.deps.Clock.Since(s.started)})
	return err
}

// hint is the next command to type after a run that stopped part-way.
func (s *session) hint() string {
	switch s.plan.Operation {
	case plan.Migrate:
		return fmt.Sprintf("run `%s` to go on, or %s to go back", s.plan.Command(), words.Command("rollback", s.plan.Pool.Name))
	case plan.Rollback:
		return fmt.Sprintf("run %s to go on", words.Command("rollback", s.plan.Pool.Name))
	}
	return fmt.Sprintf("run `dramigrate %s` to go on", s.plan.Operation)
}

// within runs do while the shared objects' lock is held besides the pool's.
func (s *session) within(ctx context.Context, do func(context.Context, *Lock) error) error {
	journal, _, err := s.journals.Load(ctx, "")
	if err != nil {
		return err
	}
	lock, err := s.acquire(ctx, "", MaxEpoch(journal), max(s.deps.LockWait, sharedLockWait))
	if err != nil {
		return err
	}
	s.fence.Hold(lock)
	defer s.release(ctx, lock)
	return do(lock.Context(), lock)
}
