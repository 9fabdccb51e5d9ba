// Package engine runs a Plan: it takes the locks, keeps the journal, does the steps
// in order, waits for what each step waits for, and can be stopped at any moment and
// started again by anyone. What it does is told by typed events; what it decides by
// is told by pure conditions.
package engine

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// Deps are what an Engine works with.
type Deps struct {
	// Config reaches the API server. It is copied, never changed.
	Config *rest.Config
	Clock  clock.WithTicker
	// Sink gets the events; nil drops them.
	Sink event.Sink
	// Namespace is the tool's own.
	Namespace string
	// Holder names this process to others (NewHolder).
	Holder      string
	ToolVersion string
	// LockTTL is DefaultTTL if it is 0; LockWait is how long to wait for another
	// run to end.
	LockTTL, LockWait time.Duration
}

// Payload is what a run needs besides its plan.
type Payload struct {
	// DriverObjects are the driver's manifests, placed by the plan's gate already;
	// prepare applies them.
	DriverObjects []*unstructured.Unstructured
	// Replan makes the plan anew. It is called once the lock is held, because the
	// cluster may have changed since the plan was shown; nil leaves this out.
	Replan func(context.Context) (*plan.Plan, error)
	// Saved says that the plan was made and reviewed earlier: it may have been applied
	// already, or stopped part-way, which the journal tells.
	Saved bool
}

// Engine runs plans on one cluster.
type Engine struct {
	deps     Deps
	bare     kubernetes.Interface // renews Leases; nothing else is written with it
	fence    *Fence
	client   kubernetes.Interface // every change through it passes the fence
	dynamic  dynamic.Interface    // so does every change through this one
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	journals *Journals
}

// New makes an Engine; it sends no request.
func New(d Deps) (*Engine, error) {
	if d.Sink == nil {
		d.Sink = func(event.Event) {}
	}
	e := &Engine{deps: d, fence: NewFence()}
	var err error
	if e.bare, err = kubernetes.NewForConfig(d.Config); err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	fenced := rest.CopyConfig(d.Config)
	fenced.Wrap(e.fence.Wrap)
	if e.client, err = kubernetes.NewForConfig(fenced); err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	if e.dynamic, err = dynamic.NewForConfig(fenced); err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	e.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(e.bare.Discovery()))
	e.journals = &Journals{Client: e.client, Namespace: d.Namespace, Clock: d.Clock}
	return e, nil
}

// RefusedError says that a run was not begun, because the plan does not fit the
// cluster; nothing was changed.
type RefusedError struct {
	Reason string
	// Hint is the next thing to do.
	Hint string
}

func (e *RefusedError) Error() string { return withHint(e.Reason, e.Hint) }

// StoppedError says that a run ended part-way. It can be resumed: the same command
// goes on, and a rollback takes it back.
type StoppedError struct {
	Err  error
	Hint string
}

func (e *StoppedError) Error() string { return withHint(e.Err.Error(), e.Hint) }

func (e *StoppedError) Unwrap() error { return e.Err }

func withHint(text, hint string) string {
	if hint == "" {
		return text
	}
	return text + "; " + hint
}

// Run executes a plan. Its errors are a *LockedError (somebody else's run), a
// *RefusedError (not begun), a *StoppedError (part-way, can be resumed), or another
// error before anything was changed.
func (e *Engine) Run(ctx context.Context, p *plan.Plan, payload Payload) error {
	s := &session{Engine: e, plan: p, payload: payload, id: string(uuid.NewUUID())[:8], started: e.deps.Clock.Now()}
	switch p.Operation {
	case plan.Migrate, plan.Rollback:
		if p.Pool == nil {
			return fmt.Errorf("plan: %s needs a pool", p.Operation)
		}
		return s.run(ctx, p.Pool.Name, s.pool)
	case plan.Prepare:
		return s.run(ctx, "", s.prepare)
	case plan.Unprepare:
		return s.run(ctx, "", s.unprepare)
	}
	return fmt.Errorf("plan: unknown operation %q", p.Operation)
}

// detached outlives an interrupted run for what has to be finished all the same:
// the journal's last entry, the release of the lock, a helper pod's removal.
func (e *Engine) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
}

func (e *Engine) emit(ev event.Event) { e.deps.Sink(ev) }

func (e *Engine) stamp() event.Stamp { return event.StampAt(e.deps.Clock.Now()) }

// DefaultHolder names this process: user@host/uuid.
func DefaultHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	user := os.Getenv("USER")
	if user == "" {
		user = fmt.Sprintf("uid-%d", os.Getuid())
	}
	return NewHolder(user, host)
}
