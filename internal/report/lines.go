package report

import (
	"fmt"
	"io"
	"sync"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/event"
)

// Progress shows a run's events while it goes on. Event may be called from several
// goroutines; Close is called once, after the last of them.
type Progress interface {
	Event(event.Event)
	Close()
}

// Lines writes one line for each event, for logs and for CI.
type Lines struct {
	mu    sync.Mutex
	w     io.Writer
	theme theme
}

// NewLines writes to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w, theme: newTheme()} }

// Event implements Progress. A line that cannot be written is lost: a run must not
// stop because nobody reads it.
func (l *Lines) Event(e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.w, logLine(e, l.theme))
}

// Close implements Progress.
func (l *Lines) Close() {}

func logLine(e event.Event, t theme) string {
	s := describe(e)
	return fmt.Sprintf("%s  %s  %s", t.dim.Render(e.At().Format("15:04:05")), s.about, styleOf(s.level, t).Render(s.text))
}

func styleOf(l level, t theme) lipgloss.Style {
	switch l {
	case good:
		return t.good
	case notice:
		return t.warn
	case alarm:
		return t.bad
	case quiet:
		return t.dim
	default:
		return lipgloss.NewStyle()
	}
}
