package plan

import (
	"fmt"
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

// batches cuts nodes, in their order, into a first batch of one node, which shows
// whether the move works at all, and batches of size for the others.
func batches(nodes []string, size int) []Batch {
	if len(nodes) == 0 {
		return nil
	}
	out := []Batch{{Nodes: nodes[:1:1]}}
	for rest := nodes[1:]; len(rest) > 0; {
		n := min(size, len(rest))
		out = append(out, Batch{Nodes: rest[:n:n]})
		rest = rest[n:]
	}
	return out
}
