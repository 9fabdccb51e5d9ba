// Package status says where every node and pool stands, from a Snapshot and the
// journals and locks beside it. It decides nothing and imports no client.
package status

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
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
	// Unknown is what could not be read.
	Unknown []cluster.Unknown `json:"unknown,omitempty"`
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
	// Lock is nil if nobody holds the pool, or if that could not be read.
	Lock *Lock `json:"lock,omitempty"`
	// Runs are the last runs, the newest last.
	Runs []cluster.RunRecord `json:"runs,omitempty"`
}

// Lock is a held Lease.
type Lock struct {
	Holder    string    `json:"holder"`
	Operation string    `json:"operation,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Expires   time.Time `json:"expires,omitzero"`
	// Expired is true if the holder did not renew the Lease in time, by our clock.
	Expired bool `json:"expired,omitempty"`
}

// Node is one node.
type Node struct {
	Name string `json:"name"`
	Pool string `json:"pool,omitempty"`
	// Mechanism is what hands the devices out, by the node's label.
	Mechanism gate.State `json:"mechanism"`
	// Operation, Phase and Run are those of a run that has not finished with the node.
	Operation string `json:"operation,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Run       string `json:"run,omitempty"`
	// Allocatable is what the device plugin offers; nil if the kubelet does not know
	// the resource.
	Allocatable *int64 `json:"allocatable,omitempty"`
	// Published is the number of devices in the driver's complete slices.
	Published int `json:"published"`
	// Incomplete says why the published devices cannot be allocated yet.
	Incomplete string `json:"incomplete,omitempty"`
	Ready      bool   `json:"ready"`
	Cordoned   bool   `json:"cordoned,omitempty"`
	// Closed is true if the tool's taint keeps pods away.
	Closed bool `json:"closed,omitempty"`
	// Double is true if both mechanisms offer devices: one device may be given away
	// twice.
	Double bool `json:"double,omitempty"`
	// Problem says what is wrong with the tool's own record.
	Problem string `json:"problem,omitempty"`
}

// Record is what is known of one pool beside the Snapshot. Nil fields mean that
// nothing is recorded.
type Record struct {
	Journal *cluster.Journal
	Lock    *Lock
}

// New gathers the status of the given pools. Nodes with devices that are in none of
// them are listed as well if all is true.
func New(s *cluster.Snapshot, pools []cluster.NodePool, records map[string]Record, resource, driver string, all bool) *Status {
	out := &Status{
		APIVersion: cluster.APIVersion, Kind: Kind, Cluster: s.Identity,
		Resource: resource, Driver: driver, Unknown: s.Unknown,
	}
	poolOf := map[string]string{}
	for _, p := range pools {
		for _, n := range p.Nodes {
			poolOf[n] = p.Name
		}
	}
	nodes := map[string]Node{}
	views := s.Views(nodeNames(s)...)
	for i := range s.Nodes {
		name := s.Nodes[i].Name
		pool, listed := poolOf[name]
		if v := views[name]; (listed || all) && v.HasDevices(resource, driver) {
			nodes[name] = nodeStatus(v, pool, resource, driver)
			out.Nodes = append(out.Nodes, nodes[name])
		}
	}
	for _, p := range pools {
		row := Pool{Name: p.Name, Selector: p.Selector, Nodes: len(p.Nodes), Lock: records[p.Name].Lock}
		if j := records[p.Name].Journal; j != nil {
			row.Runs = j.Runs
		}
		for _, name := range p.Nodes {
			n, ok := nodes[name]
			if !ok {
				continue
			}
			row.WithDevices++
			switch n.Mechanism {
			case gate.DRA:
				row.DRA++
			case gate.Switching:
				row.Switching++
			default:
				row.Plugin++
			}
		}
		out.Pools = append(out.Pools, row)
	}
	return out
}

func nodeNames(s *cluster.Snapshot) []string {
	out := make([]string, len(s.Nodes))
	for i := range s.Nodes {
		out[i] = s.Nodes[i].Name
	}
	return out
}

func nodeStatus(v cluster.NodeView, pool, resource, driver string) Node {
	n := Node{
		Name: v.Node.Name, Pool: pool,
		Mechanism: Mechanism(v.Node),
		Ready:     ready(v.Node),
		Cordoned:  v.Node.Spec.Unschedulable,
		Closed:    slices.ContainsFunc(v.Node.Spec.Taints, gate.IsSwitchingTaint),
	}
	count, present := v.Allocatable(resource)
	if present {
		n.Allocatable = &count
	}
	if own := v.SlicesOf(driver); len(own) > 0 {
		devices, incomplete := cluster.DevicesOf(own, driver)
		n.Published, n.Incomplete = len(devices), incomplete
	}
	n.Double = count > 0 && n.Published > 0
	state, err := cluster.ParseNodeState(v.Node)
	switch {
	case err != nil:
		n.Problem = err.Error()
	case state == nil && n.Mechanism != gate.Plugin:
		n.Problem = fmt.Sprintf("label %s=%s without annotation %s: not set by a run", gate.AllocationLabel,
			v.Node.Labels[gate.AllocationLabel], gate.StateAnnotation)
	case state != nil && unfinished(state):
		n.Operation, n.Phase, n.Run = state.Operation, state.Phase, state.Run
	}
	return n
}

// unfinished says that the run that marked the node has something left to do there.
func unfinished(s *cluster.NodeState) bool {
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

func ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
