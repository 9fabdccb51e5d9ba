// Package gate knows who owns the device plugin and the DRA driver, and which node
// labels move a node between them. Every way of switching a node comes down to
// labels: flipping one restarts no pod on any other node, which an edit of a
// DaemonSet does.
package gate

// State is where a node stands between the two mechanisms.
type State string

// The states. In Switching neither mechanism runs on the node.
const (
	Plugin    State = "plugin"
	Switching State = "switching"
	DRA       State = "dra"
)

// Gate is one way to move a node: the labels that a node has in each state. It is
// data, so that a new vendor's switch is one more row.
type Gate struct {
	// Name is "own-key" or the vendor switch's name.
	Name string `json:"name"`
	// Why says in one line why this gate was chosen.
	Why string `json:"why"`
	// Labels are, for each state, the labels that a node must have. An empty value
	// of a key means that the label must be absent.
	Labels map[State]map[string]string `json:"labels"`
}
