package report

import (
	"fmt"
	"io"
	"time"

	"github.com/dramigrate/dramigrate/internal/status"
	"github.com/dramigrate/dramigrate/internal/words"
)

// StatusLines writes one line for each node, pool, stray and unreadable part that is
// not as it was before, which is nil at first.
func StatusLines(w io.Writer, before, now *status.Status, at time.Time) error {
	then := map[string]string{}
	if before != nil {
		for _, l := range statusLines(before) {
			then[l.about] = l.text
		}
	}
	write := func(about, text string) error {
		_, err := fmt.Fprintf(w, "%s  %s  %s\n", at.Format("15:04:05"), Clean(about), Clean(text))
		return err
	}
	seen := map[string]bool{}
	for _, l := range statusLines(now) {
		seen[l.about] = true
		if old, known := then[l.about]; !known || old != l.text {
			if err := write(l.about, l.text); err != nil {
				return err
			}
		}
	}
	if before == nil {
		return nil
	}
	for _, l := range statusLines(before) {
		if !seen[l.about] {
			if err := write(l.about, l.gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// statusLine is one thing that a status says. about is its own; gone is what is said
// when it is not there any more.
type statusLine struct{ about, text, gone string }

func statusLines(s *status.Status) []statusLine {
	var out []statusLine
	for _, n := range s.Nodes {
		text := fmt.Sprintf("%s; plugin %s, driver %s; %s", n.Mechanism, allocatableCell(n.Allocatable), publishedCell(n.Published), availability(n))
		if why := note(n); why != "" {
			text += "; " + why
		}
		out = append(out, statusLine{"node/" + n.Name, text, "is gone"})
	}
	for _, p := range s.Pools {
		text := fmt.Sprintf("%s: %d plugin, %d switching, %d dra; lock %s; rollback %s; last run %s", words.Plural(p.WithDevices, "node", "nodes"),
			p.Plugin, p.Switching, p.DRA, lockCell(p.Lock), rollbackCell(p.Rollback), lastRun(p.Runs))
		if moved := movedText(p); moved != "" {
			text += "; " + moved
		}
		if p.Rollback != nil {
			for _, why := range p.Rollback.Why {
				text += "; " + why
			}
		}
		out = append(out, statusLine{"pool/" + p.Name, text, "is gone"})
	}
	for _, x := range s.Strays {
		out = append(out, statusLine{x.Object + " " + string(x.Kind), x.What, "is as it has to be again"})
	}
	for _, u := range s.Unknown {
		out = append(out, statusLine{"UNKNOWN " + u.Part, "could not be read: " + u.Reason, "can be read again"})
	}
	return out
}

func availability(n status.Node) string {
	text := "ready"
	if !n.Ready {
		text = "not ready"
	}
	switch open := openCell(n); open {
	case "yes":
		return text + ", open"
	case "no":
		return text + ", closed"
	default:
		return text + ", " + open
	}
}
