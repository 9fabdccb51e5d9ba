package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/access"
	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

// Intent is what a person asks for.
type Intent struct {
	Operation   Operation
	ToolVersion string
	Namespace   string
	// Resource is the extended resource, Driver the DRA driver's name.
	Resource, Driver string
	// Pool is for Migrate and Rollback only.
	Pool cluster.NodePool
	// Into is the pool that the workloads move to, for Migrate; empty if the nodes of
	// Pool are switched.
	Into     cluster.NodePool
	Settings Settings
	// Shared is what prepare recorded; nil if there is no such record.
	Shared *cluster.SharedRecord
	// Manifests are the driver's, for Prepare; nil if it is installed already.
	Manifests *Manifests
	// Witnesses are what nodes have said when they were probed, Reports the digests of
	// their reports by node.
	Witnesses []checks.Witness
	Reports   map[string]string
	// Runs says that the caller is about to run the plan: a right that is missing stops
	// it then. Whoever only looks may be somebody else. Offline says that the Snapshot is
	// from files, so that there is nobody to ask about.
	Runs, Offline bool
}

// Build makes the plan of an intent. The same snapshot and intent give the same
// plan, byte for byte. What speaks against running it is in its findings; the error
// is for intents of which no plan can be made.
func Build(in Intent, s *cluster.Snapshot) (*Plan, error) {
	b := &builder{in: in, s: s, inv: gate.Detect(s)}
	b.p = &Plan{
		APIVersion: APIVersion, Kind: Kind,
		Operation: in.Operation, ToolVersion: in.ToolVersion,
		Cluster: s.Identity, Namespace: in.Namespace,
		Resource: in.Resource, Resources: b.inv.ResourcesWith(in.Resource),
		Gate:     b.sharedGate(),
		Settings: in.Settings,
	}
	b.findDriver()
	var err error
	switch in.Operation {
	case Prepare:
		err = b.prepare()
	case Migrate:
		err = b.migrate()
	case Rollback:
		err = b.rollback()
	case Unprepare:
		err = b.unprepare()
	default:
		err = fmt.Errorf("unknown operation %q", in.Operation)
	}
	if err != nil {
		return nil, err
	}
	if b.p.Findings, err = b.findings(); err != nil {
		return nil, err
	}
	b.p.Unknown, b.p.Source = slices.Clone(s.Unknown), s.Source
	if b.p.Inputs, err = b.inputs(); err != nil {
		return nil, err
	}
	return seal(b.p)
}

// builder is one Build.
type builder struct {
	in  Intent
	s   *cluster.Snapshot
	inv gate.Inventory
	p   *Plan
}

// seal brings a plan into the form that it has when it is read from a file, so that
// the two compare equal, and gives it its digest.
func seal(p *Plan) (*Plan, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode the plan: %w", err)
	}
	var out Plan
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("decode the plan: %w", err)
	}
	out.Digest, err = ComputeDigest(&out)
	return &out, err
}

// findDriver names the driver, all that its DaemonSets serve, and where it came from.
func (b *builder) findDriver() {
	d := Driver{Name: b.in.Driver, Names: []string{b.in.Driver}}
	for _, ds := range b.inv.DriversFor(b.in.Driver) {
		d.Names = append(d.Names, ds.DriverNames...)
		d.Source = SourceInstalled
	}
	slices.Sort(d.Names)
	d.Names = slices.Compact(d.Names)
	if b.in.Shared != nil && b.in.Shared.DriverSource != "" {
		d.Source = b.in.Shared.DriverSource
	}
	b.p.Driver = d
}

// CheckInputs is what the checks look at for an intent; its Pool may be empty, which
// stands for every node with devices. A move from one pool into another has two sides.
func CheckInputs(in Intent, s *cluster.Snapshot) ([]checks.Input, error) {
	inv := gate.Detect(s)
	b := &builder{in: in, s: s, inv: inv, p: &Plan{Resources: inv.ResourcesWith(in.Resource)}}
	b.p.Gate = b.sharedGate()
	if len(in.Pool.Nodes) > 0 {
		b.p.Pool = &Pool{}
		for _, name := range in.Pool.Nodes {
			b.p.Pool.Nodes = append(b.p.Pool.Nodes, NodeRef{Name: name})
		}
		b.p.Gate = b.poolGate()
	}
	if in.Operation == Migrate {
		b.p.Class = b.class()
	}
	rules, err := access.Of(VerbOf(in.Operation), in.Namespace)
	if err != nil {
		return nil, err
	}
	into := in.Into
	if in.Operation == Rollback && in.Pool.Name != "" {
		if ref := b.wentInto(); ref != nil {
			into = b.newPool(*ref)
		}
	}
	if into.Name == "" {
		return []checks.Input{b.checkInput(in.Pool, access.Needs(rules))}, nil
	}
	b.p.Gate = gate.OwnKey() // no node is switched
	return checks.Sides(b.checkInput(in.Pool, access.Needs(rules)), into), nil
}

func (b *builder) findings() ([]checks.Finding, error) {
	rights, err := Rights(b.p)
	if err != nil {
		return nil, err
	}
	in := b.checkInput(b.p.Pool.nodePool(), rights)
	if b.p.Into == nil {
		return checks.Run(in), nil
	}
	return checks.RunBoth(in, b.p.Into.nodePool()), nil
}

// nodePool is the pool as the cluster knows one; an empty one of none.
func (p *Pool) nodePool() cluster.NodePool {
	if p == nil {
		return cluster.NodePool{}
	}
	out := cluster.NodePool{Name: p.Name, Selector: p.Selector}
	for _, n := range p.Nodes {
		out.Nodes = append(out.Nodes, n.Name)
	}
	return out
}

func (b *builder) checkInput(pool cluster.NodePool, rights []access.Need) checks.Input {
	in := checks.Input{
		Snapshot: b.s, Inventory: b.inv, Gate: b.p.Gate, Pool: pool,
		Resource: b.in.Resource, Resources: b.p.Resources, Driver: b.in.Driver,
		Operation: string(b.in.Operation), Drain: b.in.Settings.Drain,
		DeleteEmptyDir: b.in.Settings.DeleteEmptyDir, EvictUnmanaged: b.in.Settings.EvictUnmanaged,
		Skips:  b.in.Settings.Skips,
		Rights: rights, Runs: b.in.Runs, Offline: b.in.Offline, Namespace: b.in.Namespace,
		HelperImage: b.in.Settings.HelperImage, PullSecret: b.in.Settings.PullSecret,
		EditOwned: b.in.Settings.EditOwned, WaitForOwner: b.in.Settings.WaitForOwner.Duration > 0,
		DrainTimeout: b.in.Settings.DrainTimeout.Duration, Witnesses: b.in.Witnesses,
	}
	if b.p.Class != nil && b.p.Class.Action == Create {
		in.NewClass, in.NewClassObject = b.p.Class.Name, b.p.Class.Object
	}
	return in
}

// Pending says whether the plan changes anything.
func (p *Plan) Pending() bool { return len(p.Batches) > 0 || len(p.Shared) > 0 }
