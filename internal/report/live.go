package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"charm.land/lipgloss/v2"
	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/words"
)

// How many waits the live region lists, and in how many lines: it must fit a small
// terminal.
const (
	maxWaits     = 8
	maxWaitLines = 14
)

// Live keeps one region at the bottom of a terminal: a bar for each batch, what is
// waited for and why, and the time. What is over scrolls away above it as log lines.
type Live struct {
	mu     sync.Mutex
	place  inPlace
	width  func() int
	clock  clock.WithTicker
	theme  theme
	ticker clock.Ticker
	done   chan struct{}
	ended  chan struct{}

	began   time.Time
	batches []liveBatch
	active  map[string]liveWait // by node, and "" for shared steps
}

type liveBatch struct {
	nodes   []string
	done    map[string]bool
	running bool
	took    time.Duration
}

type liveWait struct {
	about    string
	text     string
	since    time.Time
	deadline time.Time
}

// NewLive draws on w until Close. width is the terminal's number of columns now.
func NewLive(w io.Writer, width func() int, clock clock.WithTicker) *Live {
	l := &Live{
		place: inPlace{w: w}, width: width, clock: clock, theme: newTheme(), began: clock.Now(),
		active: map[string]liveWait{}, done: make(chan struct{}), ended: make(chan struct{}),
		ticker: clock.NewTicker(time.Second),
	}
	go l.tick()
	return l
}

// tick redraws the times while nothing happens.
func (l *Live) tick() {
	defer close(l.ended)
	for {
		select {
		case <-l.done:
			return
		case <-l.ticker.C():
			l.mu.Lock()
			l.draw("")
			l.mu.Unlock()
		}
	}
}

// Event implements Progress.
func (l *Live) Event(e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow(e)
	if shownInRegion(e) {
		l.draw("")
		return
	}
	l.draw(logLine(e, l.theme) + "\n")
}

// Close implements Progress; the region goes away and the log lines stay.
func (l *Live) Close() {
	l.ticker.Stop()
	close(l.done)
	<-l.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.place.erase()
}

// shownInRegion says that the region tells all about the event.
func shownInRegion(e event.Event) bool {
	switch e.(type) {
	case event.StepStarted, event.StepDone, event.Waiting, event.Evicting:
		return true
	}
	return false
}

// follow keeps the region's state.
func (l *Live) follow(e event.Event) {
	switch e := e.(type) {
	case event.RunStarted:
		l.began = e.When
		for _, b := range e.Plan.Batches {
			l.batches = append(l.batches, liveBatch{nodes: b.Nodes, done: map[string]bool{}})
		}
	case event.BatchStarted:
		if b := l.batch(e.Batch); b != nil {
			b.running = true
		}
	case event.BatchDone:
		if b := l.batch(e.Batch); b != nil {
			b.running, b.took = false, e.Took
		}
	case event.NodeDone:
		delete(l.active, e.Node)
		for i := range l.batches {
			if slices.Contains(l.batches[i].nodes, e.Node) {
				l.batches[i].done[e.Node] = true
			}
		}
	case event.StepStarted:
		l.active[e.Node] = liveWait{about: place(e.Node, e.Step), text: e.Title, since: e.When}
	case event.Waiting:
		text := e.For
		if e.Reason != "" {
			text += ": " + e.Reason
		}
		l.active[e.Node] = liveWait{about: place(e.Node, e.Step), text: text, since: e.Since, deadline: e.Deadline}
	case event.StepDone:
		delete(l.active, e.Node)
	case event.StepSkipped:
		delete(l.active, e.Node)
	case event.StepFailed:
		delete(l.active, e.Node)
	}
}

func (l *Live) batch(n int) *liveBatch {
	if n < 1 || n > len(l.batches) {
		return nil
	}
	return &l.batches[n-1]
}

func (l *Live) draw(above string) {
	columns := l.width()
	if columns <= 0 {
		columns = Width
	}
	// A region that cannot be written is lost: a run must not stop because nobody
	// reads it.
	_ = l.place.draw(above, l.region(columns), columns)
}

func (l *Live) region(columns int) []string {
	now := l.clock.Now()
	var lines []string
	for i := range l.batches {
		b := &l.batches[i]
		if b.running || b.took > 0 {
			lines = append(lines, fmt.Sprintf("%-10s %s %d/%d nodes", batch(i+1, len(l.batches)),
				bar(len(b.done), len(b.nodes), min(30, columns/3)), len(b.done), len(b.nodes)))
		}
	}
	if n := len(lines); n > 4 {
		lines = append([]string{fmt.Sprintf("%s before", words.Plural(n-3, "batch", "batches"))}, lines[n-3:]...)
	}
	return append(append(lines, l.waits(columns-1, now)...), l.theme.dim.Render("elapsed "+short(now.Sub(l.began))))
}

// waits are what is waited for, by node. Names of objects stand whole in them wherever
// they fit into a line.
func (l *Live) waits(columns int, now time.Time) []string {
	var lines []string
	for i, key := range slices.Sorted(maps.Keys(l.active)) {
		w := l.active[key]
		times := short(now.Sub(w.since))
		if !w.deadline.IsZero() {
			times += ", " + short(max(0, w.deadline.Sub(now))) + " left"
		}
		about, text, times := "  "+Clean(w.about), Clean(w.text), l.theme.dim.Render("["+times+"]")
		lead := about + "  " + times + "  "
		var own []string
		if room := columns - lipgloss.Width(lead); room < min(leastRoom, lipgloss.Width(text)) {
			own = hang("  ", strings.TrimSpace(about), columns, lipgloss.NewStyle())
			lead = "    " + times + "  "
		}
		own = append(own, hang(lead, text, columns, lipgloss.NewStyle())...)
		if i == maxWaits || i > 0 && len(lines)+len(own) > maxWaitLines {
			return append(lines, fmt.Sprintf("  and %d more", len(l.active)-i))
		}
		lines = append(lines, own...)
	}
	return lines
}

func bar(done, of, columns int) string {
	full := 0
	if of > 0 {
		full = columns * done / of
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", columns-full) + "]"
}
