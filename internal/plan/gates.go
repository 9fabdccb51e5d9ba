package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/gate"
)

// sharedGate is the gate of a plan that is about the whole cluster. Pools may have
// different ones; whether a node is switched stands in the tool's own label with each.
func (b *builder) sharedGate() gate.Gate {
	choices := b.inv.For(b.in.Resource)
	if len(choices) == 1 {
		return choices[0].Gate
	}
	var parts []string
	for _, c := range choices {
		parts = append(parts, fmt.Sprintf("%s for %s", c.Gate.Name, strings.Join(c.For, ", ")))
	}
	g := gate.OwnKey()
	g.Why = "pools have different gates: " + strings.Join(parts, "; ")
	return g
}

// poolGate is the gate of the plan's pool: the one by which nodes of it were moved, else
// the one that the plugin's DaemonSets on it have. Where there is more than one a
// finding says so.
func (b *builder) poolGate() gate.Gate {
	nodes := b.poolObjects()
	chosen := b.inv.For(b.in.Resource, nodes...)[0].Gate
	recorded := gate.Recorded(nodes...)
	if recorded[chosen.Name] != "" {
		return chosen
	}
	for _, g := range gate.Gates() {
		if node := recorded[g.Name]; node != "" {
			g.Why = "by it the nodes were moved, as the record of node " + node + " says"
			return g
		}
	}
	return chosen
}

func (b *builder) poolObjects() []*corev1.Node {
	var out []*corev1.Node
	for _, ref := range b.p.Pool.Nodes {
		if node, ok := b.s.Node(ref.Name); ok {
			out = append(out, node)
		}
	}
	return out
}
