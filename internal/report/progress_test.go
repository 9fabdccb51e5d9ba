package report

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(seconds int) event.Stamp {
	return event.StampAt(noon.Add(time.Duration(seconds) * time.Second))
}

func smallPlan() *plan.Plan {
	return &plan.Plan{Operation: plan.Migrate, Pool: &plan.Pool{Name: "gpu-a"},
		Batches: []plan.Batch{{Nodes: []string{"a-1"}}, {Nodes: []string{"a-2", "a-3"}}}}
}

// story is a run with one of everything that can be told.
func story() []event.Event {
	return []event.Event{
		event.LockTaken{Stamp: at(0), Lease: "dramigrate-system/pool-gpu-a", Holder: "me@host/1", Epoch: 4, From: "she@host/2"},
		event.RunStarted{Stamp: at(1), Run: "r1", Plan: smallPlan(), Resumes: "r0"},
		event.BatchStarted{Stamp: at(2), Batch: 1, Of: 2, Nodes: []string{"a-1"}},
		event.StepSkipped{Stamp: at(2), Node: "a-1", Step: plan.StepMark, Reason: "done by an earlier run"},
		event.StepStarted{Stamp: at(3), Node: "a-1", Step: plan.StepDrain, Title: "Evict the pods"},
		event.Evicting{Stamp: at(3), Node: "a-1", Step: plan.StepDrain, Pod: "default/x1", Why: "holds a GPU"},
		event.EvictionBlocked{Stamp: at(4), Node: "a-1", Step: plan.StepDrain, Pod: "default/x1", Budgets: []string{"default/train"}, Reason: "it allows no disruption", Retry: 5 * time.Second},
		event.Waiting{Stamp: at(34), Node: "a-1", Step: plan.StepDrain, For: "pods to leave the node", Reason: "default/x1", Since: at(3).When, Deadline: at(903).When, Heartbeat: true},
		event.Evicted{Stamp: at(40), Node: "a-1", Step: plan.StepDrain, Pod: "default/x1", Took: 37 * time.Second},
		event.StepDone{Stamp: at(41), Node: "a-1", Step: plan.StepDrain, Took: 38 * time.Second},
		event.ForeignChange{Stamp: at(42), Node: "a-1", What: "the node was uncordoned", Answer: "cordoned again"},
		event.Warned{Stamp: at(43), Message: "an event could not be written"},
		event.NodeDone{Stamp: at(100), Node: "a-1", Took: 98 * time.Second},
		event.BatchDone{Stamp: at(130), Batch: 1, Of: 2, Nodes: []string{"a-1"}, Took: 128 * time.Second},
		event.BatchStarted{Stamp: at(130), Batch: 2, Of: 2, Nodes: []string{"a-2", "a-3"}},
		event.StepFailed{Stamp: at(140), Node: "a-2", Step: plan.StepCanary, Err: errors.New("node/a-2: canary: sees GPU-1, its claim holds GPU-2")},
		event.LockLost{Stamp: at(141), Lease: "dramigrate-system/pool-gpu-a", Reason: "not renewed for 40s"},
		event.RunDone{Stamp: at(142), Outcome: event.OutcomeStopped, Message: "canary failed", Took: 141 * time.Second},
		event.RunDone{Stamp: at(142), Outcome: event.OutcomeDone, Took: 141 * time.Second},
	}
}

func TestLines(t *testing.T) {
	golden(t, "lines.txt", func(w *colorprofile.Writer) error {
		l := NewLines(w)
		for _, e := range story() {
			l.Event(e)
		}
		l.Close()
		return nil
	})
}

// screen is what a terminal shows: it follows the few sequences that Live writes.
type screen struct {
	lines []string
	row   int
}

func (s *screen) write(text string) error {
	for text != "" {
		switch {
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexAny(text, "AJm")
			var n int
			_, _ = fmt.Sscanf(text[2:end], "%d", &n)
			switch text[end] {
			case 'A':
				s.row -= max(n, 1)
			case 'J':
				s.lines = s.lines[:s.row]
			}
			text = text[end+1:]
		case text[0] == '\r':
			text = text[1:]
		default:
			line, rest, ended := strings.Cut(text, "\n")
			if !ended {
				return fmt.Errorf("a line without an end: %q", text)
			}
			s.lines = append(s.lines[:s.row], line)
			s.row++
			text = rest
		}
	}
	return nil
}

// lockedBuffer may be read while a live region draws on it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestLive(t *testing.T) {
	var b lockedBuffer // the ticker's goroutine draws too
	clock := clocktesting.NewFakeClock(noon)
	live := NewLive(&b, func() int { return 60 }, clock)
	for _, e := range story()[:8] {
		clock.SetTime(e.At())
		live.Event(e)
	}
	var s screen
	if err := s.write(b.String()); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(s.lines, "\n")
	for _, want := range []string{
		"batch 1/2  [--------------------] 0/1 nodes",
		"[31s, 14m29s left]",
		"pods to leave the",
		"elapsed 33s",
	} {
		if n := strings.Count(got, want); n != 1 {
			t.Errorf("%q stands %d times on the screen, want once:\n%s", want, n, got)
		}
	}
	for _, line := range s.lines[len(s.lines)-3:] {
		if n := len([]rune(line)); n >= 60+20 { // 20 for what styles add to a dim text
			t.Errorf("a line of the region may wrap: %q", line)
		}
	}

	for _, e := range story()[8:] {
		live.Event(e)
	}
	live.Close()
	s = screen{}
	if err := s.write(b.String()); err != nil {
		t.Fatal(err)
	}
	got = strings.Join(s.lines, "\n")
	if strings.Contains(got, "elapsed") || strings.Contains(got, "[####") {
		t.Errorf("the region stays after Close:\n%s", got)
	}
	for _, want := range []string{"lock dramigrate-system/pool-gpu-a taken", "FAILED: node/a-2: canary", "CHANGED by somebody else", "Stopped after"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not on the screen:\n%s", want, got)
		}
	}
}

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"gpu-a", "gpu-a"},
		{"größe 名前", "größe 名前"},
		{"a\x1b[2Jb", `a\u001b[2Jb`},
		{"a\x1b]8;;http://x\x07b", `a\u001b]8;;http://x\u0007b`},
		{"a\r\nb", `a\u000d b`},
		{"safe\u202egnp", `safe\u202egnp`}, // right-to-left override
		{"zero\u200bwidth", `zero\u200bwidth`},
		{"c1\u009bx", `c1\u009bx`},
		{"bad\xff", `bad\ufffd`},
	} {
		if got := Clean(c.in); got != c.want {
			t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// Names come from the cluster: none of them reaches the terminal as it is.
func TestHostileNames(t *testing.T) {
	const evil = "x\x1b[31m\u202e"
	p := planFile(t, "migrate")
	p.Pool.Name, p.Batches[0].Nodes[0], p.Evictions[0].Pod = evil, evil, evil
	p.Findings[0].Message, p.Driver.Name, p.Plugins[0].Note = evil, evil, evil
	var b bytes.Buffer
	if err := Plan(Sheet{Writer: &b}, p); err != nil {
		t.Fatal(err)
	}
	l := NewLines(&b)
	l.Event(event.Warned{Stamp: at(0), Node: evil, Message: evil})
	if strings.Contains(b.String(), "\x1b[31m\u202e") || strings.Contains(b.String(), "\u202e") {
		t.Error("a name's escape sequence reached the output")
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 20, nil},
		{"one two", 20, []string{"one two"}},
		{"aaaaaaaaaa bbbbbbbbbb", 20, []string{"aaaaaaaaaa", "bbbbbbbbbb"}},
		{"a cccccccccccccccccccccccccccc b", 20, []string{"a", "cccccccccccccccccccc", "cccccccc b"}},
		// A command is copied, so that it is not broken between its words but as a shell
		// wants it, and not within quotes.
		{"first `a b c`, then", 20, []string{"first `a b c`, then"}},
		{"the first `do it now`; then", 20, []string{"the first", "`do it now`; then"}},
		{"run `kubectl label node one two key=value` now", 20, []string{"run", "`kubectl label \\", "node one two \\", "key=value` now"}},
		{"`echo '{\"a\": \"one two three\"}' | kubectl create -f -`", 20, []string{"`echo '{\"a\": \"one two three\"}' \\", "| kubectl create \\", "-f -`"}},
		{"an odd ` is a letter like others", 20, []string{"an odd ` is a letter", "like others"}},
		{"名名名名名名名名名名名", 20, []string{"名名名名名名名名名名", "名"}},
	} {
		if got := wrap(c.text, c.width); strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
