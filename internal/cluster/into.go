package cluster

import corev1 "k8s.io/api/core/v1"

// PoolRef names a pool as a run knew it.
type PoolRef struct {
	Name     string `json:"name"`
	Selector string `json:"selector"`
}

// Role is a node's part in a move of workloads from one pool to another. Such a move
// switches no node: where the plugin is part of the node it cannot be switched off.
type Role string

// The roles. Old nodes have the plugin and are left by the workloads, new ones have
// the driver alone and take them.
const (
	RoleOld Role = "old"
	RoleNew Role = "new"
)

// The operations that a NodeState and a RunRecord name.
const (
	opMigrate  = "migrate"
	opRollback = "rollback"
)

// Retired says that workloads have left the node for good in this operation, and that
// it is to stay closed: an old node of a move into another pool, or a new one of its
// rollback.
func (s *NodeState) Retired() bool {
	return s != nil && s.RetiredAt != nil &&
		(s.Role == RoleOld && s.Operation == opMigrate || s.Role == RoleNew && s.Operation == opRollback)
}

// Received says that a new node takes the workloads of the old ones.
func (s *NodeState) Received() bool {
	return s != nil && s.Role == RoleNew && s.Operation == opMigrate && s.OpenedAt != nil
}

// WentInto is the pool that runs have moved, or begun to move, the workloads of a pool
// to, by what they wrote on nodes; nil if there is nothing of such a run, or nothing
// that a rollback has not taken back.
func WentInto(s *Snapshot, pool string) *PoolRef {
	for i := range s.Nodes {
		st, err := ParseNodeState(&s.Nodes[i])
		if err == nil && st != nil && st.Pool == pool && st.Into != nil && !(st.Role == RoleNew && st.Retired()) {
			return st.Into
		}
	}
	return nil
}

// CameFrom is the pool whose workloads went into this one; empty if none did.
func CameFrom(s *Snapshot, pool NodePool) string {
	for i := range s.Nodes {
		st, err := ParseNodeState(&s.Nodes[i])
		if err == nil && st != nil && st.Role == RoleNew && st.Into != nil && st.Into.Name == pool.Name {
			return st.Pool
		}
	}
	return ""
}

// RoleNodes are the nodes whose record gives them the role in a move of the pool, in
// the order of the Snapshot.
func RoleNodes(s *Snapshot, pool string, role Role) []string {
	var out []string
	for i := range s.Nodes {
		st, err := ParseNodeState(&s.Nodes[i])
		if err == nil && st != nil && st.Pool == pool && st.Role == role {
			out = append(out, s.Nodes[i].Name)
		}
	}
	return out
}

// ForeignCordon says that somebody else has cordoned a node: it is not the tool's to
// open.
func ForeignCordon(n *corev1.Node) bool {
	state, err := ParseNodeState(n)
	return n.Spec.Unschedulable && (err != nil || state == nil || state.OpenedAt != nil || state.Prior.Unschedulable)
}
