package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/dramigrate/dramigrate/internal/event"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/status"
)

// cloudNode is a name as a cloud gives it; it has 42 columns.
const cloudNode = "ip-10-0-0-1.eu-central-1.compute.internal"

// cloudStatus is someStatus with the names of a cloud.
func cloudStatus() *status.Status {
	s := someStatus()
	s.Nodes[0].Name, s.Nodes[1].Name = cloudNode, "ip-10-0-0-2.eu-central-1.compute.internal"
	s.Strays[0].Object = "node/" + cloudNode
	return s
}

// onTerminal is what a view writes for a terminal of so many columns, without styles.
func onTerminal(t *testing.T, columns int, write func(Sheet) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(Sheet{Writer: colorprofile.NewWriter(&b, nil), Columns: columns}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func wantWidth(t *testing.T, text string, columns int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.Contains(line, "'addOrUpdateLabels={") {
			continue // a quoted word of a command stays whole, because it is copied
		}
		if n := lipgloss.Width(strings.TrimRight(line, "\n")); n > columns {
			t.Errorf("a line has %d columns of %d: %s", n, columns, line)
		}
	}
}

func TestNarrowTables(t *testing.T) {
	for _, wide := range []bool{false, true} {
		text := onTerminal(t, 60, func(s Sheet) error { return Status(s, cloudStatus(), wide) })
		wantWidth(t, text, 60)
		if !strings.Contains(text, cloudNode+"\n") {
			t.Errorf("wide %v: the node's name is not whole:\n%s", wide, text)
		}
	}
	golden(t, "status-60.txt", func(w *colorprofile.Writer) error {
		return Status(Sheet{Writer: w, Columns: 60}, cloudStatus(), false)
	})
	golden(t, "status-wide-60.txt", func(w *colorprofile.Writer) error {
		return Status(Sheet{Writer: w, Columns: 60}, cloudStatus(), true)
	})
	text := onTerminal(t, 60, func(s Sheet) error { return Pools(s, someStatus(), true) })
	wantWidth(t, text, 60)
	if !strings.Contains(text, "eks.amazonaws.com/nodegroup=gpu-a\n") {
		t.Errorf("the selector is not whole:\n%s", text)
	}
}

// A terminal that is narrower than a report can be gets the narrowest, and wraps it.
func TestLeastWidth(t *testing.T) {
	text := onTerminal(t, 1, func(s Sheet) error { return Status(s, someStatus(), false) })
	if want := onTerminal(t, 40, func(s Sheet) error { return Status(s, someStatus(), false) }); text != want {
		t.Errorf("1 column:\n%s\n40 columns:\n%s", text, want)
	}
	wantWidth(t, text, 40)
}

// Tables take what they need of a large terminal, sentences do not.
func TestLargeTerminal(t *testing.T) {
	s := cloudStatus()
	s.Strays[0].What = strings.Repeat("word ", 60)
	text := onTerminal(t, 240, func(sheet Sheet) error { return Status(sheet, s, true) })
	if !strings.Contains(text, "8b0c5ba2-1f0e-4c1e-9d3b-0a3a86b8b7c1  migrate at plugin-off, run r1; its label has drifted\n") {
		t.Errorf("a row of the table is broken:\n%s", text)
	}
	_, prose, _ := strings.Cut(text, "Not as the runs have left it")
	prose, _, _ = strings.Cut(prose, "POOL")
	wantWidth(t, prose, Width)
}

// Without a terminal a row is one line up to its last cell, however long: scripts take
// it apart.
func TestRowsStayWholeWithoutATerminal(t *testing.T) {
	s := cloudStatus()
	s.Pools[0].Name = strings.Repeat("p", 90)
	s.Nodes[0].Pool = s.Pools[0].Name
	text := onTerminal(t, 0, func(sheet Sheet) error { return Status(sheet, s, false) })
	if want := cloudNode + "  " + s.Pools[0].Name + "  dra        0       2    yes    yes\n"; !strings.Contains(text, want) {
		t.Errorf("no line %q in:\n%s", want, text)
	}
}

func TestNarrowPlans(t *testing.T) {
	large := largePlan(t, 3, 2)
	large.Findings[0].Object = "node/" + cloudNode
	for name, p := range map[string]*plan.Plan{
		"migrate": planFile(t, "migrate"), "prepare": planFile(t, "prepare"), "rollback": planFile(t, "rollback"), "large": large,
	} {
		for _, columns := range []int{60, 80} {
			text := onTerminal(t, columns, func(s Sheet) error { return Plan(s, p) })
			wantWidth(t, text, columns)
			for _, n := range nodesOf(p) {
				if !strings.Contains(text, n) {
					t.Errorf("%s, %d columns: the name %s is broken:\n%s", name, columns, n, text)
				}
			}
		}
	}
	golden(t, "plan-migrate-60.txt", func(w *colorprofile.Writer) error {
		return Plan(Sheet{Writer: w, Columns: 60}, planFile(t, "migrate"))
	})
}

// The live region keeps the names of what is waited for whole.
func TestNarrowLive(t *testing.T) {
	l := &Live{theme: newTheme(), active: map[string]liveWait{}}
	for i := range 20 {
		w := event.Waiting{Stamp: at(31), Node: strings.Replace(cloudNode, "0-1", "0-"+string(rune('a'+i)), 1), Step: "drain",
			For: "pods to leave the node", Reason: "default/training-7d9f8b6c5-00001 is Terminating", Since: at(1).When, Deadline: at(900).When}
		l.follow(w)
	}
	lines := l.waits(59, at(31).When)
	text := ansi.Strip(strings.Join(lines, "\n"))
	wantWidth(t, text, 59)
	for _, want := range []string{"ip-10-0-0-a.eu-central-1.compute.internal drain\n", "default/training-7d9f8b6c5-00001 ", "  and 17 more"} {
		if !strings.Contains(text+"\n", want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if len(lines) > maxWaitLines+1 {
		t.Errorf("%d lines", len(lines))
	}
}

// Colours of a diff take in whole lines of it and change nothing else.
func TestDiffColours(t *testing.T) {
	var b bytes.Buffer
	want := ""
	for _, name := range []string{"migrate", "rollback"} {
		p := planFile(t, name)
		if err := Diff(Sheet{Writer: &colorprofile.Writer{Forward: &b, Profile: colorprofile.ANSI}}, p); err != nil {
			t.Fatal(err)
		}
		want += onTerminal(t, 0, func(s Sheet) error { return Diff(s, p) })
	}
	if ansi.Strip(b.String()) != want || !strings.Contains(want, "\n+++ b/") {
		t.Error("the text is another one with colours")
	}
	seen := map[string]string{}
	for line := range strings.Lines(b.String()) {
		style, rest, found := strings.Cut(line, "m")
		if !strings.HasPrefix(line, "\x1b[") || !found {
			if strings.ContainsAny(line[:1], "+-@") {
				t.Errorf("no style: %q", line)
			}
			continue
		}
		start := rest[:1]
		if i := slices.IndexFunc([]string{"---", "+++", "@@"}, func(s string) bool { return strings.HasPrefix(rest, s) }); i >= 0 {
			start = []string{"---", "+++", "@@"}[i]
		}
		seen[start] = strings.TrimPrefix(style, "\x1b[")
	}
	// Bold; cyan, red, green in the terminal's own shades (ECMA-48, 8.3.117).
	for start, want := range map[string]string{"---": "1", "+++": "1", "@@": "36", "-": "31", "+": "32"} {
		if seen[start] != want {
			t.Errorf("lines with %s have the style %q, want %q", start, seen[start], want)
		}
		delete(seen, start)
	}
	if len(seen) > 0 {
		t.Errorf("styled as well: %q", seen)
	}
}

func nodesOf(p *plan.Plan) []string {
	var names []string
	for _, b := range p.Batches {
		names = append(names, b.Nodes...)
	}
	return names
}
