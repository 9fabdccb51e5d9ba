package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

// Why nothing is left to do on a node of a move into another pool, as Skip.Why says it.
const (
	retiredWhy = "is empty and stays closed, by run "
	// cordonedWhy is about a node that is not the tool's to open.
	cordonedWhy = "is cordoned by somebody else, and is not uncordoned by this run"
)

// migrateInto plans the move of a pool's workloads into a pool that is on DRA. No node
// is switched: the new nodes are looked at and opened, the old ones are left and stay
// closed.
func (b *builder) migrateInto() error {
	from, to := b.in.Pool, b.in.Into
	switch shared := overlap(from.Nodes, to.Nodes); {
	case from.Name == to.Name:
		return fmt.Errorf("pool %s: is to go into itself; name the new pool by --into", from.Name)
	case len(shared) > 0:
		return fmt.Errorf("pools %s and %s: node %s is in both; the new pool must have nodes of its own", from.Name, to.Name, shared[0])
	case len(from.Nodes) == 0:
		return fmt.Errorf("pool %s: none of its nodes is left", from.Name)
	case len(to.Nodes) == 0:
		return fmt.Errorf("pool %s: has no node", to.Name)
	}
	if err := b.bothPools(from, to); err != nil {
		return err
	}
	if err := b.chooseClass(); err != nil {
		return err
	}
	opened, err := b.roleBatches(b.p.Into, allAtOnce, b.received)
	if err != nil {
		return err
	}
	left, err := b.roleBatches(b.p.Pool, b.in.Settings.MaxUnavailable, b.retired)
	if err != nil {
		return err
	}
	b.p.Batches = slices.Concat(opened, left)
	b.p.NodeSteps = intoSteps(b.p)
	b.movedInto()
	b.p.Claims = b.claims()
	return nil
}

// wentInto is the pool that the workloads of the pool have gone into; nil if they have
// not.
func (b *builder) wentInto() *cluster.PoolRef {
	if ref := cluster.WentInto(b.s, b.in.Pool.Name); ref != nil {
		return ref
	}
	if journal := b.s.Journal(b.in.Pool.Name); journal != nil {
		return journal.Into // the nodes' records may be lost
	}
	return nil
}

// newPool is that pool, by the nodes that have taken workloads of the pool.
func (b *builder) newPool(ref cluster.PoolRef) cluster.NodePool {
	return cluster.NodePool{Name: ref.Name, Selector: ref.Selector, Nodes: cluster.RoleNodes(b.s, b.in.Pool.Name, cluster.RoleNew)}
}

// rollbackInto plans the way back out of another pool: the old nodes are opened as they
// were, then the new ones are left. Nodes that are gone since cannot be opened; the
// others are.
func (b *builder) rollbackInto(ref cluster.PoolRef, nodes []string) error {
	from, to := b.in.Pool, b.newPool(ref)
	from.Nodes = slices.DeleteFunc(nodes, func(n string) bool { return slices.Contains(to.Nodes, n) })
	if err := b.bothPools(from, to); err != nil {
		return err
	}
	opened, err := b.roleBatches(b.p.Pool, allAtOnce, b.reopened)
	if err != nil {
		return err
	}
	left, err := b.roleBatches(b.p.Into, b.in.Settings.MaxUnavailable, b.retired)
	if err != nil {
		return err
	}
	b.p.Batches = slices.Concat(opened, left)
	b.p.NodeSteps = outOfSteps(b.p)
	b.movedInto()
	return nil
}

// movedInto fills in what follows from the batches.
func (b *builder) movedInto() {
	b.p.NodeChanges = b.nodeChanges()
	b.p.Evictions = b.evictions()
}

// bothPools fixes the nodes of both pools. The gate is the tool's own key, which this
// plan does not set: it tells whether somebody else changes it meanwhile.
func (b *builder) bothPools(from, to cluster.NodePool) error {
	var err error
	if b.p.Pool, err = b.refs(from); err != nil {
		return err
	}
	if b.p.Into, err = b.refs(to); err != nil {
		return err
	}
	b.p.Gate = gate.OwnKey()
	b.p.Gate.Why = "no node is switched: the workloads go from one pool to another"
	for _, d := range b.inv.DriversFor(b.in.Driver) {
		if slices.ContainsFunc(b.p.Into.Nodes, func(n NodeRef) bool {
			node, ok := b.s.Node(n.Name)
			if !ok {
				return false
			}
			lands, _ := gate.Lands(d.DaemonSet, gate.OwnKey().With(node, gate.DRA))
			return lands || slices.Contains(d.Nodes, n.Name)
		}) {
			b.p.Driver.DaemonSets = append(b.p.Driver.DaemonSets, Object{
				Kind: "DaemonSet", Namespace: d.DaemonSet.Namespace, Name: d.DaemonSet.Name,
				Note: strings.Join(d.Evidence, "; "),
			})
		}
	}
	return nil
}

func overlap(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(n string) bool { return !slices.Contains(b, n) })
}

// allAtOnce is for nodes that no workload is on: one batch shows that it works, and
// nothing is gained by more than one more.
const allAtOnce = "100%"

// roleBatches cuts the nodes of one of the pools; skip says why one is left alone.
func (b *builder) roleBatches(pool *Pool, size string, skip func(cluster.NodeView) string) ([]Batch, error) {
	all, begun, fresh := b.partition(pool.Nodes, skip)
	n, err := MaxUnavailable(size, len(all))
	if err != nil {
		return nil, err
	}
	if pool == b.p.Pool && b.p.Operation == Migrate {
		return b.cutChosen(all, begun, fresh, n), nil
	}
	return batches(slices.Concat(begun, fresh), max(b.in.Settings.FirstBatch, 1), n), nil
}

// received says why a migration leaves a new node alone.
func (b *builder) received(v cluster.NodeView) string {
	state, err := cluster.ParseNodeState(v.Node)
	switch {
	case err == nil && state.Received() && !closed(v.Node):
		return onDRAWhy + state.Run
	case cluster.ForeignCordon(v.Node):
		return cordonedWhy
	}
	return ""
}

// retired says why an operation leaves a node alone that workloads are to leave: they
// have, or, on the way back, they never came by this tool.
func (b *builder) retired(v cluster.NodeView) string {
	state, err := cluster.ParseNodeState(v.Node)
	switch {
	case b.p.Operation == Migrate && !v.HasDevices(b.in.Resource, b.in.Driver):
		return "has no " + b.in.Resource
	case err == nil && state.Retired() && state.Operation == string(b.p.Operation) && closed(v.Node):
		return retiredWhy + state.Run
	}
	return ""
}

// reopened says why a rollback leaves an old node alone.
func (b *builder) reopened(v cluster.NodeView) string {
	_, marked := v.Node.Annotations[gate.StateAnnotation]
	if marked || slices.ContainsFunc(v.Node.Spec.Taints, gate.IsSwitchingTaint) {
		return ""
	}
	return onPluginWhy
}

func closed(n *corev1.Node) bool {
	return n.Spec.Unschedulable && slices.ContainsFunc(n.Spec.Taints, gate.IsSwitchingTaint)
}

// RoleOf is a node's part in a move into another pool; empty in a plan of any other.
func (p *Plan) RoleOf(node string) cluster.Role {
	in := func(pool *Pool) bool {
		return slices.ContainsFunc(pool.Nodes, func(n NodeRef) bool { return n.Name == node })
	}
	switch {
	case p.Into == nil:
		return ""
	case in(p.Into):
		return cluster.RoleNew
	default:
		return cluster.RoleOld
	}
}

// StepsOn are the steps that are done on a node, in order.
func (p *Plan) StepsOn(node string) []Step {
	role := p.RoleOf(node)
	return slices.DeleteFunc(slices.Clone(p.NodeSteps), func(s Step) bool { return s.Role != role })
}

// AllNodes are the nodes that the plan may work on: the pool's, and those of the pool
// that its workloads go to.
func (p *Plan) AllNodes() []NodeRef {
	var out []NodeRef
	if p.Pool != nil {
		out = slices.Clone(p.Pool.Nodes)
	}
	if p.Into != nil {
		out = append(out, p.Into.Nodes...)
	}
	return out
}

// Command is what a person types, into a POSIX shell, to go on with a migration.
func (p *Plan) Command() string {
	if p.Into == nil {
		return words.Shell("dramigrate", "apply", p.Pool.Name)
	}
	return words.Shell("dramigrate", "apply", p.Pool.Name, "--into", p.Into.Name)
}

// Leaves says that the run has workloads leave the node.
func (p *Plan) Leaves(node string) bool {
	role := p.RoleOf(node)
	return role == "" || (role == cluster.RoleOld) == (p.Operation == Migrate)
}
