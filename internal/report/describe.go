package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/words"
)

// level is how much an event wants to be seen.
type level int

const (
	plain level = iota
	quiet       // detail that the live region shows anyway
	good
	notice
	alarm
)

// sentence is an event as a line of a log: what it is about and what happened.
type sentence struct {
	about string // "node step", "batch 1/3", "run"
	text  string
	level level
}

// describe puts an event into words. The text is safe to print.
func describe(e event.Event) sentence {
	s := phrase(e)
	s.about, s.text = Clean(s.about), Clean(s.text)
	return s
}

func phrase(e event.Event) sentence {
	switch e := e.(type) {
	case event.RunStarted:
		return sentence{"run", started(e), plain}
	case event.LockTaken:
		text := fmt.Sprintf("lock %s taken, epoch %d", e.Lease, e.Epoch)
		if e.From != "" {
			return sentence{"run", text + ", over from " + e.From + ", which had not renewed it", notice}
		}
		return sentence{"run", text, plain}
	case event.LockLost:
		return sentence{"run", fmt.Sprintf("lock %s LOST: %s; nothing more is written", e.Lease, e.Reason), alarm}
	case event.BatchStarted:
		return sentence{batch(e.Batch, e.Of), words.Plural(len(e.Nodes), "node", "nodes") + ": " + strings.Join(e.Nodes, ", "), plain}
	case event.BatchDone:
		return sentence{batch(e.Batch, e.Of), "done in " + short(e.Took), good}
	case event.StepStarted:
		return sentence{place(e.Node, e.Step), e.Title, plain}
	case event.StepDone:
		return sentence{place(e.Node, e.Step), "ok after " + short(e.Took), plain}
	case event.StepSkipped:
		return sentence{place(e.Node, e.Step), "nothing to do: " + e.Reason, plain}
	case event.StepFailed:
		return sentence{place(e.Node, e.Step), "FAILED: " + e.Err.Error(), alarm}
	case event.NodeDone:
		return sentence{e.Node, "done in " + short(e.Took), good}
	case event.Waiting:
		return waiting(e)
	case event.Evicting:
		return sentence{place(e.Node, e.Step), fmt.Sprintf("evict pod %s (%s)", e.Pod, e.Why), plain}
	case event.Evicted:
		return sentence{place(e.Node, e.Step), fmt.Sprintf("pod %s gone after %s", e.Pod, short(e.Took)), plain}
	case event.EvictionBlocked:
		return blocked(e)
	case event.ForeignChange:
		return sentence{e.Node, fmt.Sprintf("CHANGED by somebody else: %s; %s", e.What, e.Answer), notice}
	case event.Warned:
		return sentence{orRun(e.Node), "WARNING: " + e.Message, notice}
	case event.RunDone:
		return ended(e)
	default:
		return sentence{"run", fmt.Sprintf("%T", e), quiet}
	}
}

func started(e event.RunStarted) string {
	text := fmt.Sprintf("%s, run %s", e.Plan.Operation, e.Run)
	if e.Plan.Pool != nil {
		other := ""
		if into := e.Plan.Into; into != nil {
			other = map[plan.Operation]string{plan.Migrate: " into pool ", plan.Rollback: " from pool "}[e.Plan.Operation] + into.Name
		}
		text = fmt.Sprintf("%s of pool %s%s, run %s: %s in %s", e.Plan.Operation, e.Plan.Pool.Name, other, e.Run,
			words.Plural(nodesIn(e.Plan), "node", "nodes"), words.Plural(len(e.Plan.Batches), "batch", "batches"))
	}
	if e.Resumes != "" {
		text += "; goes on with run " + e.Resumes
	}
	return text
}

func waiting(e event.Waiting) sentence {
	text := "waits for " + e.For
	level := plain
	if e.Heartbeat {
		text = "still waits for " + e.For
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	text += fmt.Sprintf(" [%s of at most %s]", short(e.When.Sub(e.Since)), short(e.Deadline.Sub(e.Since)))
	return sentence{place(e.Node, e.Step), text, level}
}

func blocked(e event.EvictionBlocked) sentence {
	text := fmt.Sprintf("pod %s may not be evicted: %s", e.Pod, e.Reason)
	switch len(e.Budgets) {
	case 0:
	case 1:
		text = fmt.Sprintf("pod %s may not be evicted, budget %s: %s", e.Pod, e.Budgets[0], e.Reason)
	default:
		text = fmt.Sprintf("pod %s may not be evicted, budgets %s: %s", e.Pod, strings.Join(e.Budgets, ", "), e.Reason)
	}
	if e.Retry > 0 {
		text += "; again in " + short(e.Retry)
	}
	return sentence{place(e.Node, e.Step), text, notice}
}

func ended(e event.RunDone) sentence {
	text := fmt.Sprintf("%s after %s", e.Outcome, short(e.Took))
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Outcome == event.OutcomeDone {
		return sentence{"run", text, good}
	}
	return sentence{"run", strings.ToUpper(text[:1]) + text[1:], alarm}
}

func batch(n, of int) string { return fmt.Sprintf("batch %d/%d", n, of) }

func place(node string, step plan.StepID) string {
	return strings.TrimSpace(node + " " + string(step))
}

func orRun(node string) string {
	if node == "" {
		return "run"
	}
	return node
}

func nodesIn(p *plan.Plan) int {
	n := 0
	for _, b := range p.Batches {
		n += len(b.Nodes)
	}
	return n
}

// short is a duration as a person says it: seconds, from ten seconds on without
// fractions.
func short(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
