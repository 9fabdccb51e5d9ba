package drain

import "time"

// Event is something that happened while a node drains. The types below are all
// there are.
type Event interface{ drainEvent() }

// Evicting is sent once for each pod, before its first eviction request.
type Evicting struct {
	When time.Time
	Pod  string // namespace/name
	Why  string // what the caller gave as the reason to evict it
}

// Blocked is sent when the server refused an eviction for now, and it is tried
// again. It is sent for each refusal.
type Blocked struct {
	When time.Time
	Pod  string
	// Budgets are the PodDisruptionBudgets that cover the pod, as namespace/name.
	// It is empty if the refusal is not about a budget, or they could not be read.
	Budgets []string
	// Reason is what the server answered.
	Reason string
	// Retry is the pause before the next request.
	Retry time.Duration
}

// Evicted is sent when a pod that the drain was to remove is gone.
type Evicted struct {
	When time.Time
	Pod  string
	// Took is the time since its first eviction request, or since the drain began
	// for a pod that was terminating already.
	Took time.Duration
}

// Waiting is the heartbeat of a drain: what is still in the way.
type Waiting struct {
	When      time.Time
	Remaining []Remaining
	Since     time.Time
	Deadline  time.Time
}

// Noted is something that a person should know and that stops nothing, such as a
// pod whose emptyDir data is lost.
type Noted struct {
	When    time.Time
	Message string
}

func (Evicting) drainEvent() {}
func (Blocked) drainEvent()  {}
func (Evicted) drainEvent()  {}
func (Waiting) drainEvent()  {}
func (Noted) drainEvent()    {}
