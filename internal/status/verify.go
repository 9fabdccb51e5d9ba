package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/pending"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/vendor"
	"github.com/dramigrate/dramigrate/internal/words"
)

// VerificationKind is the kind of the document that Verify makes.
const VerificationKind = "Verification"

// Result is what one look showed.
type Result string

// The results. Unknown is what could not be seen; it is never taken for OK.
const (
	OK      Result = "ok"
	Failed  Result = "failed"
	Unknown Result = "unknown"
	// Double is a failure of its own kind: both mechanisms offer devices.
	Double Result = "double"
)

// Verification says whether a pool is on DRA as it has to be.
type Verification struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Pool       string `json:"pool"`
	Resource   string `json:"resource"`
	Driver     string `json:"driver"`
	// Result is the worst of all looks.
	Result Result `json:"result"`
	// Class is about the DeviceClass, which is the whole cluster's.
	Class []Look         `json:"class"`
	Nodes []NodeVerified `json:"nodes"`
	// Findings are what the catalogue of checks has to say of the pool's nodes on DRA.
	Findings []checks.Finding `json:"findings,omitempty"`
	// Waiting are the pods that ask for the resource and wait or fail on the pool's nodes,
	// or might go there. They do not count for Result: the reason may lie elsewhere.
	Waiting *pending.Waiters `json:"waiting,omitempty"`
}

// NodeVerified are the looks at one node.
type NodeVerified struct {
	Name string `json:"name"`
	// Left is true for a node of the plugin that workloads leave, or have left, for
	// another pool: nothing is to run there by DRA.
	Left  bool   `json:"left,omitempty"`
	Looks []Look `json:"looks"`
}

// Look is one thing that has to hold.
type Look struct {
	What   string `json:"what"`
	Result Result `json:"result"`
	// Detail is the evidence.
	Detail string `json:"detail,omitempty"`
}

// Target is what is verified.
type Target struct {
	Pool             cluster.NodePool
	Resource, Driver string
	// Now tells how long pods wait, and which locks have expired. Of a Snapshot from files
	// it is when that was taken.
	Now time.Time
	// Undated is true if the files do not say when that was: whether who holds a lock is
	// alive is not known then.
	Undated bool
	// Locks are those of LockPools, by pool. While a run is under way no command has to
	// be advised.
	Locks map[string]cluster.LockInfo
	// Unseen says why locks could not be read; empty if they were.
	Unseen string
	// Chosen are the arguments that chose the pool; `dramigrate plan` takes the same.
	Chosen []string
}

// Verify looks at every node of the pool that has devices, from the API alone.
func Verify(ctx context.Context, s *cluster.Snapshot, t Target) *Verification {
	v := &verifier{s: s, t: t, inv: gate.Detect(s), locks: LockPools(s, t.Pool)}
	v.resources = v.inv.ResourcesWith(t.Resource)
	out := &Verification{
		APIVersion: cluster.APIVersion, Kind: VerificationKind,
		Pool: t.Pool.Name, Resource: t.Resource, Driver: t.Driver,
		Nodes: []NodeVerified{}, // a list in JSON as well, if there are none
	}
	out.Class = v.class(ctx)
	nodes := slices.Clone(t.Pool.Nodes)
	for _, taker := range cluster.RoleNodes(s, t.Pool.Name, cluster.RoleNew) {
		if !slices.Contains(nodes, taker) {
			nodes = append(nodes, taker)
		}
	}
	views := s.Views(nodes...)
	for _, name := range nodes {
		if view, ok := views[name]; ok && view.HasDevices(t.Resource, t.Driver) {
			out.Nodes = append(out.Nodes, NodeVerified{Name: name, Left: left(view), Looks: v.node(view)})
		}
	}
	out.Waiting = pending.WaitersOf(s, &t.Pool, pending.Options{Resource: t.Resource, Driver: t.Driver, Now: t.Now})
	out.Result = out.worst()
	return out
}

// Add puts a look at a node that was done otherwise, such as a canary's, into the
// verification.
func (v *Verification) Add(node string, l Look) {
	for i := range v.Nodes {
		if v.Nodes[i].Name == node {
			v.Nodes[i].Looks = append(v.Nodes[i].Looks, l)
		}
	}
	v.Result = v.worst()
}

// worse is the result of two that a person has to know first.
func worse(a, b Result) Result {
	order := []Result{Double, Failed, Unknown, OK}
	if slices.Index(order, b) < slices.Index(order, a) {
		return b
	}
	return a
}

// Result is the worst of the looks at the node.
func (n *NodeVerified) Result() Result {
	out := OK
	for _, l := range n.Looks {
		out = worse(out, l.Result)
	}
	return out
}

// worst is the result that a person has to know first. A pool without a node that
// has devices was not verified.
func (v *Verification) worst() Result {
	all := slices.Clone(v.Class)
	for _, n := range v.Nodes {
		all = append(all, n.Looks...)
	}
	for _, r := range []Result{Double, Failed, Unknown} {
		if slices.ContainsFunc(all, func(l Look) bool { return l.Result == r }) {
			return r
		}
	}
	if len(v.Nodes) == 0 {
		return Unknown
	}
	return OK
}

type verifier struct {
	s         *cluster.Snapshot
	t         Target
	inv       gate.Inventory
	resources []string
	locks     []string // the pools of LockPools
}

// look answers OK without a reason, Failed with one, and Unknown if one of the parts
// that it needs could not be read.
func (v *verifier) look(what, good, why string, parts ...string) Look {
	for _, part := range parts {
		if reason, unknown := v.s.IsUnknown(part); unknown {
			return Look{What: what, Result: Unknown, Detail: part + " could not be read: " + reason}
		}
	}
	if why != "" {
		return Look{What: what, Result: Failed, Detail: why}
	}
	return Look{What: what, Result: OK, Detail: good}
}

func (v *verifier) class(ctx context.Context) []Look {
	const what = "one DeviceClass carries the resource and selects the driver's devices"
	winner, others := v.s.ClassFor(v.t.Resource)
	if winner == nil {
		return []Look{v.look(what, "", "no DeviceClass carries "+v.t.Resource, cluster.PartClasses)}
	}
	why := ""
	if len(others) > 0 {
		why = fmt.Sprintf("deviceclass/%s and deviceclass/%s both carry %s", winner.Name, others[0].Name, v.t.Resource)
	} else if match, err := cluster.MatchClass(ctx, winner, v.s.Slices); err != nil {
		why = err.Error()
	} else if match.Failed != "" {
		why = "deviceclass/" + winner.Name + ": its selectors fail on " + match.Failed
	} else if len(match.Selected[v.t.Driver]) == 0 {
		why = fmt.Sprintf("deviceclass/%s selects no device of %s", winner.Name, v.t.Driver)
	}
	return []Look{v.look(what, "deviceclass/"+winner.Name, why, cluster.PartClasses, cluster.PartSlices)}
}

func (v *verifier) node(n cluster.NodeView) []Look {
	if mark, err := cluster.ParseNodeState(n.Node); err == nil && mark != nil && mark.Role != "" {
		return v.moved(n, mark)
	}
	devices, incomplete := cluster.DevicesOf(n.SlicesOf(v.t.Driver), v.t.Driver)
	return []Look{
		v.label(n),
		v.double(n),
		v.look("no pod of the device plugin is left", "", v.plugin(n), cluster.PartPods, cluster.PartDaemonSets),
		v.look("nothing is allocatable by the device plugin", "", v.allocatable(n)),
		v.look("no pod holds a device by the plugin", "", v.backed(n), cluster.PartPods, cluster.PartClaims),
		v.look("the driver's pods are ready", "", v.driver(n), cluster.PartPods, cluster.PartDaemonSets),
		v.look("the driver's slices are complete", words.Count(len(devices), "device"), v.published(devices, incomplete), cluster.PartSlices),
		v.same(n, devices),
		v.look("the node is open to pods", "", v.open(n)),
		v.settled(n),
	}
}

// settled is unknown while the kubelet may still remember the plugin: pods of the node
// can start now, and fail when the kubelet's grace is over.
func (v *verifier) settled(n cluster.NodeView) Look {
	const what = "the kubelet's memory of the plugin is cleared for good"
	mark, err := cluster.ParseNodeState(n.Node)
	why := ""
	switch {
	case err != nil:
		why = err.Error()
	case mark == nil:
		if at, _ := v.gateOf(n.Node).StateOf(n.Node.Labels); at == gate.DRA { // by other hands
			why = v.then("no run has recorded it", "", v.locks...)
			break
		}
		// Whether it can be moved, and by which command, takes a plan.
		do := ""
		if len(v.t.Chosen) > 0 {
			do = "`" + words.Shell(append([]string{"dramigrate", "plan"}, v.t.Chosen...)...) + "` says whether the pool can be moved, and how"
		}
		why = v.then("no run has moved the node", do, v.locks...)
	case mark.SettledAt == nil:
		why = v.then(fmt.Sprintf("run %s has not settled the node", mark.Run),
			words.Command(plan.Operation(mark.Operation).Verb(), mark.Pool)+" goes on with it", mark.Pool, v.t.Pool.Name)
	default:
		met := v.inv.MetAgain(n, v.t.Resource, mark.SettledAt.Time)
		if met == "" {
			return v.look(what, "", "", cluster.PartPods)
		}
		why = v.then(fmt.Sprintf("the kubelet has met the plugin again since the node had settled (%s)", met),
			"keep the plugin off, and "+words.Command("apply", mark.Pool)+" settles the node anew", mark.Pool, v.t.Pool.Name)
	}
	return Look{What: what, Result: Unknown, Detail: why}
}

func (v *verifier) label(n cluster.NodeView) Look {
	g, known := v.inv.Of(n.Node, v.t.Resource)
	if !known {
		return Look{What: "the node is switched to DRA", Result: Unknown, Detail: "its record names a gate that this version does not know"}
	}
	var off []string
	for _, d := range drift(g, []gate.State{gate.DRA}, n.Node) {
		off = append(off, fmt.Sprintf("label %s is %s%s, not %s", d.Label, orAbsent(d.Have), d.writer(), orAbsent(d.Want)))
	}
	return v.look("the node is switched to DRA", "by gate "+g.Name, joined(off))
}

func (v *verifier) double(n cluster.NodeView) Look {
	l := v.look("devices are offered by one mechanism only (from the API alone)", "", "", cluster.PartSlices)
	if why := n.OfferedTwice(v.t.Resource, v.t.Driver); l.Result == OK && why != "" {
		l.Result, l.Detail = Double, "ADVERTISED TWICE: "+why
	}
	return l
}

// plugin names the plugin's pods on the node, those on their way out included: each of
// them may register, and then its devices are advertised by both.
func (v *verifier) plugin(n cluster.NodeView) string {
	var pods []string
	for _, plugin := range v.inv.PluginsFor(v.t.Resource) {
		for i := range n.Pods {
			if p := &n.Pods[i]; p.Owner.Kind == "DaemonSet" && p.Owner.UID == plugin.DaemonSet.UID && !p.Finished() {
				pods = append(pods, p.Ref())
			}
		}
	}
	return strings.Join(pods, ", ")
}

func (v *verifier) allocatable(n cluster.NodeView) string {
	var left []string
	for _, r := range v.resources {
		if count, _ := n.Allocatable(r); count > 0 {
			left = append(left, fmt.Sprintf("%s is %d", r, count))
		}
	}
	return strings.Join(left, ", ")
}

func (v *verifier) backed(n cluster.NodeView) string {
	var pods []string
	for _, p := range n.PluginBackedPods(v.resources) {
		pods = append(pods, p.Ref())
	}
	return strings.Join(pods, ", ")
}

func (v *verifier) driver(n cluster.NodeView) string {
	found := false
	for _, d := range v.inv.DriversFor(v.t.Driver) {
		if lands, _ := gate.Lands(d.DaemonSet, v.gateOf(n.Node).With(n.Node, gate.DRA)); !lands && !slices.Contains(d.Nodes, n.Node.Name) {
			continue
		}
		found = true
		name := "daemonset/" + d.DaemonSet.Namespace + "/" + d.DaemonSet.Name
		i := slices.IndexFunc(n.Pods, func(p cluster.Pod) bool {
			return p.Owner.Kind == "DaemonSet" && p.Namespace == d.DaemonSet.Namespace && p.Owner.Name == d.DaemonSet.Name && !p.Terminating
		})
		switch {
		case i < 0:
			return name + " has no pod on the node"
		case !n.Pods[i].Ready:
			return strings.TrimSpace("pod " + n.Pods[i].Ref() + " is not ready " + n.Pods[i].Waiting)
		}
	}
	if !found {
		return "no DaemonSet runs " + v.t.Driver + " on the node"
	}
	return ""
}

func (v *verifier) published(devices cluster.Devices, incomplete string) string {
	if incomplete == "" && len(devices) == 0 {
		return v.t.Driver + " publishes no device"
	}
	return incomplete
}

// same compares what is published with what the plugin advertised before the switch, by
// what both name a device by. Where that is not known only another number tells a
// difference, and the same number leaves it unknown.
func (v *verifier) same(n cluster.NodeView, devices cluster.Devices) Look {
	join := vendor.JoinOf(v.t.Driver)
	what := "the published devices are those that the node had before"
	if join.Key != vendor.NoKey {
		what += ", by " + string(join.Key)
	}
	state, err := cluster.ParseNodeState(n.Node)
	switch {
	case err != nil:
		return Look{What: what, Result: Unknown, Detail: err.Error()}
	case state == nil || len(state.Advertised) == 0:
		return Look{What: what, Result: Unknown, Detail: "which devices the node had before is not recorded"}
	}
	diff := devices.Diff(v.t.Driver, v.resources, state.Advertised)
	why := ""
	switch {
	case diff.Same():
	case join.Key == vendor.NoKey:
		why = fmt.Sprintf("%s published, and the plugin had %d", words.Count(diff.Now, "device"), diff.Before)
	default:
		why = fmt.Sprintf("missing %s; unexpected %s", orNone(diff.Missing), orNone(diff.Unexpected))
	}
	l := v.look(what, words.Count(diff.Before, "device"), why, cluster.PartSlices)
	if l.Result == OK && join.Key == vendor.NoKey {
		l.Result, l.Detail = Unknown, fmt.Sprintf("as many as before (%d), and which is which is not known: %s", diff.Before, join.Unknown)
	}
	return l
}

func (v *verifier) open(n cluster.NodeView) string {
	switch {
	case slices.ContainsFunc(n.Node.Spec.Taints, gate.IsSwitchingTaint):
		return "it carries the taint " + gate.SwitchingTaintKey
	case !cluster.Ready(n.Node):
		return "it is not ready"
	}
	return ""
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// gateOf is the gate of a node; the own key where its record names an unknown one.
func (v *verifier) gateOf(n *corev1.Node) gate.Gate {
	g, known := v.inv.Of(n, v.t.Resource)
	if !known {
		return gate.OwnKey()
	}
	return g
}
