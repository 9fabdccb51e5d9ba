package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

// StrayKind is in which way something is not as the runs have left it.
type StrayKind string

// The kinds of strays.
const (
	// OnPlugin is a node of a migrated pool that hands its devices out by the plugin, as
	// one that an autoscaler has made since.
	OnPlugin StrayKind = "on-plugin"
	// TwoStates is a node on which one mechanism is said to hand the devices out and
	// the other does, or both do.
	TwoStates StrayKind = "two-states"
	// Unmarked is a node with the tool's label and without its record.
	Unmarked StrayKind = "unmarked"
	// Drifted is a node whose gate labels are not what its record says.
	Drifted StrayKind = "drifted"
	// PartWay is a node that a run has left in the middle of its steps.
	PartWay StrayKind = "part-way"
	// LeftPool is a marked node that its pool's selector does not choose any more.
	LeftPool StrayKind = "left-pool"
	// Gone is a node that runs have worked on and that is not in the cluster any more.
	Gone StrayKind = "gone"
	// Unreadable is a node whose record of a run cannot be read.
	Unreadable StrayKind = "unreadable"
	// GateOpen is a DaemonSet of the plugin that switched nodes do not keep off any more.
	GateOpen StrayKind = "gate-open"
)

// Stray is one node, or DaemonSet, that is not as the runs have left it.
type Stray struct {
	Object string    `json:"object"` // "node/a-1", "daemonset/kube-system/x"
	Pool   string    `json:"pool,omitempty"`
	Kind   StrayKind `json:"kind"`
	What   string    `json:"what"`
	// Do is the next thing to do.
	Do string `json:"do,omitempty"`
}

func (g *gatherer) strays() {
	for i := range g.out.Nodes {
		n := &g.out.Nodes[i]
		for _, find := range []func(*Node) *Stray{g.twoStates, g.unreadable, g.drifted, g.unmarked, g.onPlugin, g.partWay, g.leftPool} {
			if s := find(n); s != nil {
				s.Object, s.Pool = "node/"+n.Name, n.Pool
				g.out.Strays = append(g.out.Strays, *s)
			}
		}
	}
	for _, p := range g.pools {
		for _, name := range g.namesOf(p) {
			g.gone(name)
		}
	}
	g.gatesOpen()
}

// twoStates leaves a node that a run is working on to that run, unless both mechanisms
// offer devices: that must never be.
func (g *gatherer) twoStates(n *Node) *Stray {
	offered := n.Allocatable != nil && *n.Allocatable > 0
	what := ""
	switch {
	case n.Double:
		what = fmt.Sprintf("ADVERTISED TWICE: the plugin offers %d and the driver %s: one may be given away twice", *n.Allocatable, words.Count(n.published(), "device"))
	case n.Operation != "" && n.Closed:
	case n.Role == cluster.RoleNew: // the driver need not be kept to labelled nodes
	case n.Mechanism != gate.Plugin && offered:
		what = fmt.Sprintf("its label says %s, and the plugin offers %s", n.Mechanism, words.Count(int(*n.Allocatable), "device"))
	case n.Mechanism == gate.Plugin && n.published() > 0:
		what = fmt.Sprintf("its label says plugin, and the driver publishes %s", words.Count(n.published(), "device"))
	}
	if what == "" {
		return nil
	}
	return &Stray{Kind: TwoStates, What: what, Do: "cordon it; then see which of the DaemonSets should not be there: " + words.Command("verify", n.Pool)}
}

func (g *gatherer) unreadable(n *Node) *Stray {
	if n.Problem == "" {
		return nil
	}
	return &Stray{Kind: Unreadable, What: strings.TrimPrefix(n.Problem, "node/"+n.Name+": "),
		Do: fmt.Sprintf("plans that concern the node stop there (DRM012): repair its annotation %s by what `kubectl get node %s -o yaml` and the pool's journal show", gate.StateAnnotation, n.Name)}
}

func (g *gatherer) drifted(n *Node) *Stray {
	if len(n.Drift) == 0 {
		return nil
	}
	var off []string
	for _, d := range n.Drift {
		off = append(off, d.String())
	}
	return &Stray{Kind: Drifted, What: joined(off), Do: "find out who changed the label; " + n.setAgain()}
}

func (g *gatherer) unmarked(n *Node) *Stray {
	if n.state != nil || n.Problem != "" || n.Mechanism == gate.Plugin {
		return nil
	}
	if _, known := n.gate.StateOf(n.GateLabels); !known {
		return &Stray{Kind: Unmarked,
			What: fmt.Sprintf("label %s=%s is none of the gate's states: not set by a run", gate.AllocationLabel, n.GateLabels[gate.AllocationLabel]),
			Do:   fmt.Sprintf("find out who sets it, then `kubectl label node %s %s-`", n.Name, gate.AllocationLabel)}
	}
	return &Stray{Kind: Unmarked,
		What: fmt.Sprintf("label %s=%s without annotation %s: not set by a run", gate.AllocationLabel, n.GateLabels[gate.AllocationLabel], gate.StateAnnotation),
		Do:   "look whether the node group's template sets the label; " + words.Command("rollback", n.Pool) + " puts the node back"}
}

// onPlugin knows a node that a run has yet to come to, by the journal: it names the
// nodes that the plan has.
func (g *gatherer) onPlugin(n *Node) *Stray {
	if n.Mechanism != gate.Plugin || n.state != nil || n.Problem != "" || !g.migrated(n.Pool) {
		return nil
	}
	while, more := "is on the plugin while others of the pool are on DRA", []string(nil)
	if into := cluster.WentInto(g.s, n.Pool); into != nil {
		while = "is open and on the plugin while the pool's workloads go into pool " + into.Name
		more = []string{"--into", into.Name}
	}
	what := ""
	journal := g.s.Journal(n.Pool)
	_, unread := g.s.IsUnknown(cluster.PartJournals)
	switch last := lastRun(journal); {
	case unread:
		what = while + "; whether a run has yet to come to it is not known, as the journal cannot be read"
	case last == nil:
		what = while + ", and there is no journal of the pool"
	case last.Operation != "migrate":
		return nil // a rollback has put it back
	case last.Outcome == cluster.RunDone && slices.Contains(journal.Nodes, n.Name):
		what = fmt.Sprintf("was migrated by run %s and is on the plugin again, without a record: made anew under its name?", last.ID)
	case last.Outcome == cluster.RunDone:
		what = fmt.Sprintf("came after run %s had migrated the pool", last.ID)
	case !slices.Contains(journal.Nodes, n.Name):
		what = fmt.Sprintf("came after run %s was planned", last.ID)
	default:
		return nil
	}
	return &Stray{Kind: OnPlugin, What: what, Do: words.Command("apply", n.Pool, more...) + " moves it"}
}

// migrated says whether the pool is on DRA, or on the way there.
func (g *gatherer) migrated(pool string) bool {
	return pool != "" && slices.ContainsFunc(g.out.Nodes, func(n Node) bool {
		return n.Pool == pool && (n.Mechanism == gate.DRA || n.state != nil && n.state.Operation == "migrate")
	})
}

// lastRun is the newest run that may have changed something.
func lastRun(j *cluster.Journal) *cluster.RunRecord {
	if j == nil {
		return nil
	}
	for i := len(j.Runs) - 1; i >= 0; i-- {
		if j.Runs[i].Outcome != cluster.RunRefused {
			return &j.Runs[i]
		}
	}
	return nil
}

func (g *gatherer) partWay(n *Node) *Stray {
	if _, unread := g.s.IsUnknown(cluster.PartLocks); unread || n.Operation == "" {
		return nil
	}
	pool, apply := n.Pool, words.Command("apply", n.Pool)
	if n.state != nil && n.state.Into != nil {
		pool = n.state.Pool
		apply = words.Command("apply", pool, "--into", n.state.Into.Name)
	}
	lock := g.lock(pool)
	if lock != nil && !lock.Expired && !lock.Unknown {
		return nil
	}
	what := fmt.Sprintf("run %s (%s) has left it at step %s, and nobody holds the pool's lock", n.Run, n.Operation, n.Phase)
	do := words.Command("rollback", pool) + " goes on"
	if n.Operation == "migrate" {
		do = apply + " goes on, " + words.Command("rollback", pool) + " goes back"
	}
	if lock != nil && lock.Unknown {
		what = fmt.Sprintf("run %s (%s) is at step %s, and whether %s, who holds the pool's lock since %s, is at it still is not known, as the files do not say when they were made",
			n.Run, n.Operation, n.Phase, lock.Holder, lock.Since.UTC().Format(time.RFC3339))
		do = "look at the cluster itself by " + words.Command("status", pool) + "; if nobody is at it, " + do
	}
	return &Stray{Kind: PartWay, What: what, Do: do}
}

func (g *gatherer) leftPool(n *Node) *Stray {
	if n.state == nil || n.Role == cluster.RoleNew {
		return nil
	}
	for _, p := range g.known {
		if p.Name == n.Pool && slices.Contains(p.Nodes, n.Name) && g.selects(p, n.Name) {
			return nil
		}
	}
	return &Stray{Kind: LeftPool, What: fmt.Sprintf("carries the record of pool %s, whose selector %s does not choose it any more", n.Pool, n.state.Selector),
		Do: words.Command("rollback", n.Pool) + " takes it along"}
}

// selects says whether the pool's selector itself chooses the node: the nodes of a pool
// that only records know are there by their record.
func (g *gatherer) selects(p cluster.NodePool, node string) bool {
	if p.Selector == "" {
		return false
	}
	selector, err := labels.Parse(p.Selector)
	n, there := g.s.Node(node)
	return err == nil && there && selector.Matches(labels.Set(n.Labels))
}

func (g *gatherer) gone(pool string) {
	journal := g.s.Journal(pool)
	if journal == nil {
		return
	}
	for _, name := range journal.Nodes {
		if _, exists := g.s.Node(name); !exists {
			g.out.Strays = append(g.out.Strays, Stray{Object: "node/" + name, Pool: pool, Kind: Gone,
				What: "runs have worked on it, and it is not in the cluster any more", Do: "nothing: a rollback leaves it out"})
		}
	}
}

// gatesOpen finds DaemonSets of the plugin that would land on a switched node.
func (g *gatherer) gatesOpen() {
	for _, p := range g.inv.PluginsFor(g.o.Resource) {
		var on []string
		for i := range g.out.Nodes {
			n := &g.out.Nodes[i]
			node, ok := g.s.Node(n.Name)
			if !ok || n.Mechanism == gate.Plugin {
				continue
			}
			if lands, _ := gate.Lands(p.DaemonSet, n.gate.With(node, n.Mechanism)); lands {
				on = append(on, n.Name)
			}
		}
		if len(on) > 0 {
			g.out.Strays = append(g.out.Strays, Stray{
				Object: "daemonset/" + p.DaemonSet.Namespace + "/" + p.DaemonSet.Name, Kind: GateOpen,
				What: "nothing keeps the plugin off " + few(on) + ", which are switched: its node affinity is not what prepare made it",
				Do:   prepareAgain(p.Owner),
			})
		}
	}
}

// prepareAgain is how a plugin's DaemonSet is kept off switched nodes again.
func prepareAgain(o gate.Owner) string {
	if o.Owned() {
		return "cordon these nodes; `dramigrate prepare` shows what " + o.String() + ", which owns it, has to change"
	}
	return "`dramigrate prepare`"
}
