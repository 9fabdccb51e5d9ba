package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
	into      *poolFlags // nil if the pool's own nodes are switched
	settings  plan.Settings
	manifests *plan.Manifests
	namespace string
	resource  string
	driver    string
	// runs says that the caller is about to run the plan.
	runs      bool
	probeGate bool
	// saved says that the settings are those of a saved plan, which says it all.
	saved bool
	// reachGiven says that how helper pods get at GPUs was said, be it that they do not.
	reachGiven bool
	// reports is a folder of NodeReports; empty for none.
	reports string
}

// plan reads the cluster and plans.
func (p *planner) plan(ctx context.Context) (*plan.Plan, error) {
	made, _, err := p.look(ctx)
	return made, err
}

// look is plan, with what the plan was made from; that is there even if no plan could
// be made.
func (p *planner) look(ctx context.Context) (*plan.Plan, *cluster.Snapshot, error) {
	s, err := p.app.look(ctx, cluster.LoadOptions{Namespace: p.namespace, Advice: true, ProbeGate: p.probeGate})
	if err != nil {
		return nil, nil, err
	}
	in := plan.Intent{
		Operation: p.op, ToolVersion: p.app.build.Version, Namespace: p.namespace,
		Resource: p.resource, Driver: p.driver, Settings: p.settings, Manifests: p.manifests,
		Runs: p.runs, Offline: p.app.offline(),
	}
	if p.reports != "" {
		if in.Witnesses, in.Reports, err = readReports(p.reports, p.app.Clock().Now()); err != nil {
			return nil, s, withCode(ExitError, "--reports %s: %w", p.reports, err)
		}
	}
	if p.pool != nil {
		if in.Pool, err = p.find(s); err != nil {
			return nil, s, err
		}
		if in.Into, err = p.findInto(s, in.Pool); err != nil {
			return nil, s, err
		}
		if !p.saved {
			set := &in.Settings
			way := podWay{set.HelperImage, set.PullSecret, set.RuntimeClass, set.DriverRoot}
			way.recall(s.Journal(in.Pool.Name), p.reachGiven)
			set.HelperImage, set.PullSecret, set.RuntimeClass, set.DriverRoot = way.image, way.pullSecret, way.runtimeClass, way.driverRoot
		}
	}
	if journal := s.Journal(""); journal != nil {
		in.Shared = journal.Shared
	}
	made, err := plan.Build(in, s)
	if err != nil || p.app.offline() {
		return made, s, err
	}
	if p.asksForGate(made) {
		again := *p
		again.probeGate = true
		return again.look(ctx)
	}
	// Which rights a plan needs is known by the plan.
	if asked, err := p.app.mayRun(ctx, s, made); err != nil || !asked {
		return made, s, err
	}
	made, err = plan.Build(in, s)
	return made, s, err
}

// asksForGate says that a run would go on without knowing whether the feature gate is on.
// Whoever is about to have the DeviceClass made may as well ask by one that is not stored.
func (p *planner) asksForGate(made *plan.Plan) bool {
	return p.runs && !p.probeGate && slices.ContainsFunc(made.Findings, func(f checks.Finding) bool {
		return f.Code == "DRM032" && f.Severity == checks.Unknown
	})
}

// find resolves the pool. For a rollback the journal counts as well: its selector if
// neither a label nor a node's mark gives the pool's name any more, and its nodes
// whatever became of their labels.
func (p *planner) find(s *cluster.Snapshot) (cluster.NodePool, error) {
	pool, err := p.pool.find(s)
	name := cmp.Or(pool.Name, p.pool.arg)
	if p.op != plan.Rollback || name == "" {
		return pool, err
	}
	journal := s.Journal(name)
	if journal == nil {
		return pool, err
	}
	if err != nil {
		if journal.Selector == "" {
			return pool, err
		}
		byJournal := poolFlags{selector: journal.Selector, name: name}
		if pool, err = byJournal.find(s); err != nil {
			return pool, err
		}
	}
	for _, n := range journal.Nodes {
		if _, exists := s.Node(n); exists {
			pool.Nodes = append(pool.Nodes, n)
		}
	}
	slices.Sort(pool.Nodes)
	pool.Nodes = slices.Compact(pool.Nodes)
	return pool, nil
}

// findInto resolves the pool that the workloads move to; an empty one if they do not.
// Like a pool that does not exist, one that cannot take them is wrong usage.
func (p *planner) findInto(s *cluster.Snapshot, from cluster.NodePool) (cluster.NodePool, error) {
	if p.into == nil {
		return cluster.NodePool{}, nil
	}
	into, err := p.into.find(s)
	if err != nil {
		return into, fmt.Errorf("--into: %w", err)
	}
	if into.Name == from.Name {
		return into, usageError("--into %s: is the pool that the workloads leave", into.Name)
	}
	for _, n := range into.Nodes {
		if slices.Contains(from.Nodes, n) {
			return into, usageError("--into %s: node %s is in pool %s as well; the new pool must have nodes of its own", into.Name, n, from.Name)
		}
	}
	return into, nil
}

// verdict is the exit code that a plan's findings ask for.
func verdict(findings []checks.Finding) int {
	code := ExitOK
	for _, f := range findings {
		switch {
		case !f.Stops():
		case f.Severity == checks.Blocker:
			return ExitBlocked
		default:
			code = ExitUnknown
		}
	}
	return code
}
