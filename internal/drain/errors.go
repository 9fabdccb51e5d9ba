package drain

import (
	"fmt"
	"strings"
	"time"
)

// Remaining is a pod that a drain has not got rid of, and why.
type Remaining struct {
	Pod     string   // namespace/name
	Budgets []string // namespace/name of the budgets that cover it, where known
	Reason  string
}

// String names the pod, what is in the way, and the budgets.
func (r Remaining) String() string {
	s := r.Pod + ": " + r.Reason
	if len(r.Budgets) > 0 {
		s += " (budget " + strings.Join(r.Budgets, ", ") + ")"
	}
	return s
}

// Describe puts remaining pods into one line.
func Describe(list []Remaining) string {
	parts := make([]string, len(list))
	for i, r := range list {
		parts[i] = r.String()
	}
	return strings.Join(parts, "; ")
}

// TimeoutError says that pods were left at the deadline. Those that were evicted
// stay evicted; draining again goes on with the rest.
type TimeoutError struct {
	Node      string
	After     time.Duration
	Remaining []Remaining
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("node/%s: drain: not done within %s: %s", e.Node, e.After, Describe(e.Remaining))
}

// RefusedError says that pods cannot be evicted, now or later, until a person does
// something about them.
type RefusedError struct {
	Node string
	Pods []Remaining

	cause error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("node/%s: drain: %s", e.Node, Describe(e.Pods))
}

// Unwrap gives the answers of the eviction API, if it was asked.
func (e *RefusedError) Unwrap() error { return e.cause }
