package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/google/go-cmp/cmp"

	"github.com/dramigrate/dramigrate/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares what a printer writes to a pipe with a file that a person has read.
func golden(t *testing.T, name string, print func(w *colorprofile.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := print(colorprofile.NewWriter(&b, nil)); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if filepath.Ext(name) == ".html" {
		// The style has a file of its own to be read in.
		text = strings.Replace(text, htmlStyle, "(html/plan.css)", 1)
		text = strings.Replace(text, styleSource(), "(its digest)", 1)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("%s: an escape sequence went into a pipe", path)
	}
	return b.String()
}

// planFile reads a plan that the plan package's own tests made.
func planFile(t *testing.T, name string) *plan.Plan {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "plan", "testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlanViews(t *testing.T) {
	for _, name := range []string{"prepare", "migrate", "rollback", "unprepare"} {
		t.Run(name, func(t *testing.T) {
			p := planFile(t, name)
			for file, write := range map[string]func(Sheet, *plan.Plan) error{
				"md": alike(Markdown), "html": alike(HTML), "diff": Diff, "github": alike(GitHub),
			} {
				golden(t, "plan-"+name+"."+file, func(w *colorprofile.Writer) error { return write(Sheet{Writer: w}, p) })
			}
			text := golden(t, "plan-"+name+".txt", func(w *colorprofile.Writer) error { return Plan(Sheet{Writer: w}, p) })
			for line := range strings.Lines(text) {
				if n := lipgloss.Width(strings.TrimRight(line, "\n")); n > Width {
					t.Errorf("a line has %d columns: %s", n, line)
				}
			}
		})
	}
}
