// Package event holds what a run tells while it goes on. The types are all there
// are, so that a printer can switch over them; none of them is needed to decide
// anything. They stand apart from the engine so that printers need no client.
package event

import (
	"time"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// Event is one thing that happened in a run.
type Event interface {
	event()
	// At is when it happened, by the run's clock.
	At() time.Time
}

// Sink takes events. It is called from several goroutines at once and must not
// block for long: nodes of a batch wait for it.
type Sink func(Event)

// Stamp is the part that all events have.
type Stamp struct{ When time.Time }

func (Stamp) event() {}

// At implements Event.
func (s Stamp) At() time.Time { return s.When }

// StampAt makes the common part of an event.
func StampAt(t time.Time) Stamp { return Stamp{When: t} }

// RunStarted is the first event of a run.
type RunStarted struct {
	Stamp
	Run  string
	Plan *plan.Plan
	// Resumes is the ID of the unfinished run that this one goes on with; empty
	// if there is none.
	Resumes string
}

// BatchStarted is sent before the first node of a batch is touched.
type BatchStarted struct {
	Stamp
	Batch, Of int // counted from 1
	Nodes     []string
}

// BatchDone is sent when all nodes of a batch are open again.
type BatchDone struct {
	Stamp
	Batch, Of int
	Nodes     []string
	Took      time.Duration
}

// StepStarted is sent before a step acts. Node is empty for shared steps.
type StepStarted struct {
	Stamp
	Node  string
	Step  plan.StepID
	Title string
}

// StepDone is sent when all that a step waits for holds.
type StepDone struct {
	Stamp
	Node string
	Step plan.StepID
	Took time.Duration
}

// StepSkipped is sent for a step whose result was there already, as in a resumed
// run.
type StepSkipped struct {
	Stamp
	Node   string
	Step   plan.StepID
	Reason string
}

// StepFailed is sent when a step ends the work on its node.
type StepFailed struct {
	Stamp
	Node string
	Step plan.StepID
	Err  error
}

// NodeDone is sent when a node is open again.
type NodeDone struct {
	Stamp
	Node string
	Took time.Duration
}

// Waiting is sent when the reason of a wait changes, and as a heartbeat.
type Waiting struct {
	Stamp
	Node string
	Step plan.StepID
	// For is what is waited for, Reason why it does not hold yet.
	For, Reason     string
	Since, Deadline time.Time
	// Heartbeat is true if the reason is still the one that was sent last.
	Heartbeat bool
}

// Evicting is sent once for each pod, before its first eviction request.
type Evicting struct {
	Stamp
	Node string
	Step plan.StepID
	Pod  string // namespace/name
	Why  string
}

// Evicted is sent when a pod is gone.
type Evicted struct {
	Stamp
	Node string
	Step plan.StepID
	Pod  string
	Took time.Duration
}

// EvictionBlocked is sent when the server refused an eviction for now.
type EvictionBlocked struct {
	Stamp
	Node string
	Step plan.StepID
	Pod  string
	// Budgets are the PodDisruptionBudgets in the way, as namespace/name.
	Budgets []string
	Reason  string
	Retry   time.Duration
}

// ForeignChange is sent when somebody else changed what the run depends on.
type ForeignChange struct {
	Stamp
	Node string
	// What was changed, and the run's Answer to it.
	What, Answer string
}

// Warned is something that a person should know and that stops nothing. Node may
// be empty.
type Warned struct {
	Stamp
	Node    string
	Message string
}

// LockTaken is sent when a Lease is held.
type LockTaken struct {
	Stamp
	Lease  string // namespace/name
	Holder string
	Epoch  int64
	// From is the holder whose expired Lease was taken over; empty otherwise.
	From string
}

// LockLost is sent when a Lease is lost; the run stops writing.
type LockLost struct {
	Stamp
	Lease  string
	Reason string
}

// Outcome is how a run ended.
type Outcome string

// The outcomes, as the journal records them.
const (
	OutcomeDone    Outcome = cluster.RunDone
	OutcomeStopped Outcome = cluster.RunStopped
	OutcomeRefused Outcome = cluster.RunRefused
)

// RunDone is the last event of a run.
type RunDone struct {
	Stamp
	Outcome Outcome
	Message string
	Took    time.Duration
}
