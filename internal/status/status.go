// Package status says where every node and pool stands, from a Snapshot. It decides
// nothing and imports no client.
package status

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/pending"
	"github.com/dramigrate/dramigrate/internal/words"
)

// Kind of the document that New makes; its API version is cluster.APIVersion.
const Kind = "Status"

// Status is where a cluster, or one pool of it, stands.
type Status struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Cluster    cluster.Identity `json:"cluster"`
	Resource   string           `json:"resource"`
	Driver     string           `json:"driver"`
	Pools      []Pool           `json:"pools,omitempty"`
	// Nodes are those that have, or had, devices of the resource.
	Nodes []Node `json:"nodes,omitempty"`
	// Strays are what is not as the runs have left it.
	Strays []Stray `json:"strays,omitempty"`
	// Findings are what the catalogue of checks has to say of the nodes on DRA.
	Findings []checks.Finding `json:"findings,omitempty"`
	// Waiting are the pods that ask for the resource and wait or fail, with why.
	Waiting *pending.Waiters `json:"waiting,omitempty"`
	// Unknown is what could not be read.
	Unknown []cluster.Unknown `json:"unknown,omitempty"`
}

// Double says whether a node offers devices by both mechanisms.
func (s *Status) Double() bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Double })
}

// Pool is one pool: how many of its nodes stand where, who holds it, what ran last.
type Pool struct {
	Name     string `json:"name"`
	Selector string `json:"selector,omitempty"`
	// Nodes is the size of the pool, WithDevices how many of them are in Status.Nodes.
	Nodes       int `json:"nodes"`
	WithDevices int `json:"withDevices"`
	// Plugin, Switching and DRA count the nodes with devices by their mechanism.
	Plugin    int `json:"plugin"`
	Switching int `json:"switching"`
	DRA       int `json:"dra"`
	// Retired counts the nodes that workloads have left, and that stay closed; they are
	// among those above.
	Retired int `json:"retired,omitempty"`
	// Into is the pool that the workloads went to, or are on their way to, From the one
	// that they came from.
	Into string `json:"into,omitempty"`
	From string `json:"from,omitempty"`
	// Lock is nil if nobody holds the pool.
	Lock *Lock `json:"lock,omitempty"`
	// Rollback says whether the pool could be put back; nil if there is nothing to.
	Rollback *Rollback `json:"rollback,omitempty"`
	// Runs are the last runs, the newest last.
	Runs []cluster.RunRecord `json:"runs,omitempty"`
}

// Lock is a held Lease, or one of which nothing is known.
type Lock struct {
	// Holder is empty if the Lease could not be read.
	Holder    string    `json:"holder"`
	Operation string    `json:"operation,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Expires   time.Time `json:"expires,omitzero"`
	// Expired is true if the holder had not renewed the Lease in time, by our clock or,
	// of a Snapshot from files, when that was taken.
	Expired bool `json:"expired,omitempty"`
	// Unknown is true if that cannot be said: the Lease could not be read, or nobody knows
	// of what time the files are.
	Unknown bool `json:"unknown,omitempty"`
}

// Node is one node.
type Node struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
	Pool string    `json:"pool,omitempty"`
	// Mechanism is what hands the devices out, by the node's label.
	Mechanism gate.State `json:"mechanism"`
	// GateLabels are the labels of the node's gate that it has.
	GateLabels map[string]string `json:"gateLabels,omitempty"`
	// Drift is how these labels differ from what the node's own record says.
	Drift []LabelDrift `json:"drift,omitempty"`
	// Operation, Phase and Run are those of a run that has not finished with the node.
	Operation string `json:"operation,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Run       string `json:"run,omitempty"`
	// Role is the node's part in a move of workloads from one pool into another; Retired is
	// true for a node that they have left, and that stays closed.
	Role    cluster.Role `json:"role,omitempty"`
	Retired bool         `json:"retired,omitempty"`
	// Allocatable is what the device plugin offers; nil if the kubelet does not know
	// the resource.
	Allocatable *int64 `json:"allocatable,omitempty"`
	// Published is the number of devices in the driver's complete slices; nil if slices
	// could not be read.
	Published *int `json:"published,omitempty"`
	// Incomplete says why the published devices cannot be allocated yet.
	Incomplete     string `json:"incomplete,omitempty"`
	Ready          bool   `json:"ready"`
	Cordoned       bool   `json:"cordoned,omitempty"`
	KubeletVersion string `json:"kubeletVersion,omitempty"`
	// Closed is true if the tool's taint keeps pods away.
	Closed bool `json:"closed,omitempty"`
	// Double is true if both mechanisms offer devices: one device may be given away
	// twice.
	Double bool `json:"double,omitempty"`
	// Problem says what is wrong with the tool's own record.
	Problem string `json:"problem,omitempty"`

	state *cluster.NodeState
	gate  gate.Gate
}

// published is 0 as well if slices could not be read.
func (n *Node) published() int {
	if n.Published == nil {
		return 0
	}
	return *n.Published
}

// Options say what a Status is about.
type Options struct {
	// Pool is the one pool to show; nil shows all pools, and the nodes with devices that
	// are in none.
	Pool             *cluster.NodePool
	Resource, Driver string
	// Now tells which locks have expired, and how long pods wait. Of a Snapshot from files
	// it is when that was taken.
	Now time.Time
	// Undated is true if the files do not say when that was: whether who holds a lock is
	// alive is not known then.
	Undated bool
	// Waiting asks why pods wait. The Snapshot has to hold classes and claims.
	Waiting bool
}

// New gathers a Status.
func New(s *cluster.Snapshot, o Options) *Status {
	known := knownPools(s)
	g := &gatherer{s: s, o: o, inv: gate.Detect(s), pools: known, known: known}
	if o.Pool != nil {
		g.pools = []cluster.NodePool{*o.Pool}
	}
	g.out = &Status{
		APIVersion: cluster.APIVersion, Kind: Kind, Cluster: s.Identity,
		Resource: o.Resource, Driver: o.Driver, Unknown: s.Unknown,
	}
	g.nodes()
	for _, p := range g.pools {
		g.out.Pools = append(g.out.Pools, g.pool(p))
	}
	g.strays()
	if o.Waiting {
		g.out.Waiting = pending.WaitersOf(s, o.Pool, pending.Options{Resource: o.Resource, Driver: o.Driver, Now: o.Now})
	}
	return g.out
}

// gatherer is one New.
type gatherer struct {
	s   *cluster.Snapshot
	o   Options
	inv gate.Inventory
	// pools are those that are told of, known all that there are.
	pools, known []cluster.NodePool
	out          *Status
}

// knownPools are the pools that labels name, and those that only runs know: their
// nodes were chosen by a selector, or have lost their label since.
func knownPools(s *cluster.Snapshot) []cluster.NodePool {
	out := cluster.Pools(s.Nodes)
	add := func(name, selector string) {
		if name == "" || slices.ContainsFunc(out, func(p cluster.NodePool) bool { return p.Name == name }) {
			return
		}
		pool, err := cluster.SelectPool(s, name, selector)
		if err != nil { // no node of it is left
			pool = cluster.NodePool{Name: name, Selector: selector}
		}
		out = append(out, pool)
	}
	for _, j := range s.Journals {
		if len(j.Nodes) > 0 {
			add(j.Pool, j.Selector)
		}
	}
	for i := range s.Nodes {
		if st, err := cluster.ParseNodeState(&s.Nodes[i]); err == nil && st != nil {
			add(st.Pool, st.Selector)
			if st.Into != nil {
				add(st.Into.Name, st.Into.Selector)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b cluster.NodePool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (g *gatherer) nodes() {
	poolOf := map[string]string{}
	for _, p := range slices.Backward(g.pools) {
		for _, n := range p.Nodes {
			poolOf[n] = p.Name
		}
	}
	views := g.s.Views(nodeNames(g.s)...)
	var chosen sets.Set[string]
	if g.o.Pool != nil {
		chosen = sets.New(g.o.Pool.Nodes...)
	}
	for i := range g.s.Nodes {
		v := views[g.s.Nodes[i].Name]
		n := g.node(v, poolOf[v.Node.Name])
		// A node's own record may know the pool that was chosen by another name.
		shown := g.o.Pool == nil || chosen.Has(n.Name) || n.Pool == g.o.Pool.Name
		if shown && v.HasDevices(g.o.Resource, g.o.Driver) {
			g.out.Nodes = append(g.out.Nodes, n)
		}
	}
}

func nodeNames(s *cluster.Snapshot) []string {
	out := make([]string, len(s.Nodes))
	for i := range s.Nodes {
		out[i] = s.Nodes[i].Name
	}
	return out
}

// node gathers what is known of a node. Its own record tells its pool before any label
// does.
func (g *gatherer) node(v cluster.NodeView, pool string) Node {
	n := Node{
		Name: v.Node.Name, UID: v.Node.UID, Pool: pool,
		Mechanism:      Mechanism(v.Node),
		Ready:          cluster.Ready(v.Node),
		Cordoned:       v.Node.Spec.Unschedulable,
		Closed:         slices.ContainsFunc(v.Node.Spec.Taints, gate.IsSwitchingTaint),
		KubeletVersion: v.Node.Status.NodeInfo.KubeletVersion,
	}
	count, present := v.Allocatable(g.o.Resource)
	if present {
		n.Allocatable = &count
	}
	if _, unknown := g.s.IsUnknown(cluster.PartSlices); !unknown {
		devices := 0
		if own := v.SlicesOf(g.o.Driver); len(own) > 0 {
			list, incomplete := cluster.DevicesOf(own, g.o.Driver)
			devices, n.Incomplete = len(list), incomplete
		}
		n.Published = &devices
	}
	n.Double = count > 0 && n.published() > 0
	state, err := cluster.ParseNodeState(v.Node)
	if err != nil {
		n.Problem = err.Error()
	} else if state != nil {
		n.state, n.Pool = state, state.Pool
		n.Role, n.Retired = state.Role, state.Retired()
		if state.Role == cluster.RoleNew {
			n.Pool = state.Into.Name
		}
		if unfinished(state) {
			n.Operation, n.Phase, n.Run = state.Operation, state.Phase, state.Run
		}
	}
	g.gateLabels(&n, v.Node)
	return n
}

// pool counts the nodes of the pool. A node that carries the mark of another pool is
// still one of this one's.
func (g *gatherer) pool(p cluster.NodePool) Pool {
	row := Pool{Name: p.Name, Selector: p.Selector, Nodes: len(p.Nodes)}
	for _, name := range g.namesOf(p) {
		if row.Lock == nil {
			row.Lock = g.lock(name)
		}
		if j := g.s.Journal(name); j != nil {
			row.Runs = slices.Concat(row.Runs, j.Runs)
		}
	}
	slices.SortStableFunc(row.Runs, func(a, b cluster.RunRecord) int { return a.Started.Compare(b.Started.Time) })
	for i := range g.out.Nodes {
		n := &g.out.Nodes[i]
		if !slices.Contains(p.Nodes, n.Name) {
			continue
		}
		row.WithDevices++
		if n.Retired {
			row.Retired++
		}
		switch n.Mechanism {
		case gate.DRA:
			row.DRA++
		case gate.Switching:
			row.Switching++
		default:
			row.Plugin++
		}
	}
	if into := cluster.WentInto(g.s, p.Name); into != nil {
		row.Into = into.Name
	}
	row.From = cluster.CameFrom(g.s, p)
	row.Rollback = g.rollback(p)
	return row
}

// namesOf are the names by which runs know a pool: its own, or, of nodes that were chosen
// by a selector and a name that no run has used, those in the nodes' records.
func (g *gatherer) namesOf(p cluster.NodePool) []string {
	if g.o.Pool == nil || slices.ContainsFunc(g.known, func(k cluster.NodePool) bool { return k.Name == p.Name }) {
		return []string{p.Name}
	}
	return LockPools(g.s, p)
}

// lock is who holds a pool; nil if nobody does.
func (g *gatherer) lock(pool string) *Lock {
	if _, unread := g.s.IsUnknown(cluster.PartLocks); unread {
		return &Lock{Unknown: true}
	}
	lock, held := g.s.Lock(pool)
	if !held {
		return nil
	}
	return &Lock{
		Holder: lock.Holder, Operation: lock.Info["operation"], Since: lock.Since,
		Expires: lock.ExpiresAt, Expired: !g.o.Undated && lock.Expired(g.o.Now), Unknown: g.o.Undated,
	}
}

// unfinished says that the run that marked the node has something left to do there.
func unfinished(s *cluster.NodeState) bool {
	if s.Role != "" {
		return !s.Received() && !s.Retired()
	}
	return s.Operation != "migrate" || s.SettledAt == nil
}

// Mechanism is where a node stands by its label.
func Mechanism(n *corev1.Node) gate.State {
	switch value, ok := n.Labels[gate.AllocationLabel]; {
	case !ok:
		return gate.Plugin
	case value == gate.ValueDRA:
		return gate.DRA
	default:
		return gate.Switching
	}
}

// few names the first three of a list and counts the rest.
func few(list []string) string {
	return words.Few(3, list)
}
