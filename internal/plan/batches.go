package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DefaultMaxUnavailable is the share of a pool that is switched at the same time.
const DefaultMaxUnavailable = "10%"

// MaxUnavailable resolves a count ("3") or a percentage ("10%") of total nodes to
// the number of nodes that may be closed at the same time, at least 1. Percentages
// round up, as a small pool would otherwise never move.
func MaxUnavailable(value string, total int) (int, error) {
	digits, percent := strings.CutSuffix(value, "%")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil:
		return 0, fmt.Errorf("max-unavailable %q: must be a number of nodes or a percentage such as 10%%", value)
	case n < 1:
		return 0, fmt.Errorf("max-unavailable %q: must be at least 1", value)
	case percent && n > 100:
		return 0, fmt.Errorf("max-unavailable %q: must not be more than 100%%", value)
	case percent:
		n = (total*n + 99) / 100
	}
	return max(1, min(n, max(total, 1))), nil
}

// batches cuts nodes, in their order, into a first batch, which shows whether the
// move works at all, and batches of size for the others.
func batches(nodes []string, first, size int) []Batch {
	var out []Batch
	for n := first; len(nodes) > 0; n = size {
		n = min(n, len(nodes))
		out = append(out, Batch{Nodes: nodes[:n:n]})
		nodes = nodes[n:]
	}
	return out
}

// chosen takes the batches that a person wrote, without the nodes that have nothing
// to do, and returns the nodes that are in none of them. Batches with a node that an
// earlier run has begun with go first: that node is closed.
func chosen(written []Batch, todo []string, begun func(node string) bool) (list []Batch, rest []string) {
	var later []Batch
	taken := map[string]bool{}
	for _, w := range written {
		var b Batch
		for _, node := range w.Nodes {
			if slices.Contains(todo, node) && !taken[node] {
				b.Nodes = append(b.Nodes, node)
				taken[node] = true
			}
		}
		switch {
		case slices.ContainsFunc(b.Nodes, begun):
			list = append(list, b)
		case len(b.Nodes) > 0:
			later = append(later, b)
		}
	}
	for _, node := range todo {
		if !taken[node] {
			rest = append(rest, node)
		}
	}
	return append(list, later...), rest
}
