package cli

import (
	"context"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// planner makes the plan of one verb, as often as it is asked: to show it, and again
// when the lock is held.
type planner struct {
	app       *app
	op        plan.Operation
	pool      *poolFlags // nil for shared objects
	settings  plan.Settings
	manifests *plan.Manifests
	namespace string
	resource  string
	driver    string
}

// plan reads the cluster and plans.
func (p *planner) plan(ctx context.Context) (*plan.Plan, error) {
	l, err := p.app.look(ctx)
	if err != nil {
		return nil, err
	}
	in := plan.Intent{
		Operation: p.op, ToolVersion: p.app.build.Version, Namespace: p.namespace,
		Resource: p.resource, Driver: p.driver, Settings: p.settings, Manifests: p.manifests,
	}
	if p.pool != nil {
		if in.Pool, err = p.find(ctx, l); err != nil {
			return nil, err
		}
	}
	journal, _, err := p.app.journalsIn(l.client, p.namespace).Load(ctx, "")
	if err != nil {
		return nil, err
	}
	in.Shared = journal.Shared
	return plan.Build(in, l.snapshot)
}

// find resolves the pool. For a rollback the journal's selector counts if neither a
// label nor a node's mark gives the pool's name any more.
func (p *planner) find(ctx context.Context, l *look) (cluster.NodePool, error) {
	pool, err := p.pool.find(l.snapshot)
	if err == nil || p.op != plan.Rollback || p.pool.arg == "" {
		return pool, err
	}
	journal, found, jerr := p.app.journalsIn(l.client, p.namespace).Load(ctx, p.pool.arg)
	if jerr != nil || !found || journal.Selector == "" {
		return pool, err
	}
	byJournal := poolFlags{selector: journal.Selector, name: p.pool.arg}
	return byJournal.find(l.snapshot)
}

// verdict is the exit code that a plan's findings ask for.
func verdict(findings []checks.Finding) int {
	code := ExitOK
	for _, f := range findings {
		switch f.Severity {
		case checks.Blocker:
			return ExitBlocked
		case checks.Unknown:
			code = ExitUnknown
		}
	}
	return code
}
