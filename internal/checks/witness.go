package checks

import (
	"slices"
	"time"
)

// Witness is what a node said of its devices when it was probed, as far as checks judge
// by it.
type Witness struct {
	Node string
	// Time is when the node was asked, Aged that this is too long ago.
	Time time.Time
	Aged bool
	// Double says why devices are offered or held by both mechanisms, one entry a
	// device; empty if none is.
	Double []string
	// Held is true if one of them is held by both, not only offered.
	Held bool
	// Undecided says why the node cannot tell whether a device is in two hands; empty if
	// it can.
	Undecided string
	// GPUs are the UUIDs that the hardware shows, each with the UUIDs of its partitions;
	// nil if it was not looked at, or not all of it could be read.
	GPUs map[string][]string
	// Offered are the ids that the kubelet advertises for each resource of a device
	// plugin; nil if it did not answer.
	Offered map[string][]string
}

// witnesses are those of the operation's nodes.
func (in Input) witnesses() []Witness {
	nodes := in.nodes()
	return slices.DeleteFunc(slices.Clone(in.Witnesses), func(w Witness) bool { return !slices.Contains(nodes, w.Node) })
}

// outdated says why the word of a node is of another time; "" if it is not. The node may
// be another machine by now: its name was given again.
func (in Input) outdated(w Witness) string {
	at := w.Time.UTC().Format("2006-01-02T15:04:05Z")
	node, ok := in.Snapshot.Node(w.Node)
	switch {
	case !ok:
		return "a report of " + at + " is of a node that is not in the cluster"
	case node.CreationTimestamp.After(w.Time):
		return "the node was made anew after its report of " + at
	case w.Aged:
		return "its report is of " + at
	}
	return ""
}
