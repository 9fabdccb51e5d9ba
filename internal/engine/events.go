package engine

import (
	"github.com/dramigrate/dramigrate/internal/drain"
	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// drainEvents translates what a Drainer reports into the run's events.
func drainEvents(node string, step plan.StepID, sink event.Sink) func(drain.Event) {
	return func(e drain.Event) {
		switch e := e.(type) {
		case drain.Evicting:
			sink(event.Evicting{Stamp: event.StampAt(e.When), Node: node, Step: step, Pod: e.Pod, Why: e.Why})
		case drain.Evicted:
			sink(event.Evicted{Stamp: event.StampAt(e.When), Node: node, Step: step, Pod: e.Pod, Took: e.Took})
		case drain.Blocked:
			sink(event.EvictionBlocked{Stamp: event.StampAt(e.When), Node: node, Step: step, Pod: e.Pod,
				Budgets: e.Budgets, Reason: e.Reason, Retry: e.Retry})
		case drain.Waiting:
			sink(event.Waiting{Stamp: event.StampAt(e.When), Node: node, Step: step, For: "pods to leave the node",
				Reason: drain.Describe(e.Remaining), Since: e.Since, Deadline: e.Deadline, Heartbeat: true})
		case drain.Noted:
			sink(event.Warned{Stamp: event.StampAt(e.When), Node: node, Message: e.Message})
		}
	}
}
