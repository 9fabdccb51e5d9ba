package report

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// largePlan moves a pool of as many nodes, with the names of a cloud and eight pods on
// each, in batches of size.
func largePlan(t *testing.T, nodes, size int) *plan.Plan {
	t.Helper()
	p := planFile(t, "migrate")
	p.Pool.Nodes, p.Batches, p.Evictions = nil, nil, nil
	change := p.NodeChanges[0]
	change.Nodes = nil
	for i := range nodes {
		name := fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/256, i%256)
		p.Pool.Nodes = append(p.Pool.Nodes, plan.NodeRef{Name: name})
		change.Nodes = append(change.Nodes, name)
		if i%size == 1 || i == 0 || size == 1 {
			p.Batches = append(p.Batches, plan.Batch{})
		}
		last := &p.Batches[len(p.Batches)-1]
		last.Nodes = append(last.Nodes, name)
		for j := range 8 {
			p.Evictions = append(p.Evictions, plan.Eviction{Pod: fmt.Sprintf("team-%d/training-7d9f8b6c5-%05d", j, i), Node: name,
				Why: "holds nvidia.com/gpu by the device plugin", Budgets: []string{fmt.Sprintf("team-%d/training", j)}})
		}
	}
	p.NodeChanges = []plan.NodeChange{change}
	return p
}

// A pool of 500 nodes stays below 1 MB and shows every node, whatever its batches.
func TestHTMLOfLargePools(t *testing.T) {
	for _, size := range []int{50, 1} {
		p := largePlan(t, 500, size)
		text := write(t, "html", p)
		if len(text) > 1_000_000 {
			t.Errorf("batches of %d: %d bytes", size, len(text))
		}
		if got := strings.Count(text, "to DRA in batch "); got != 500 {
			t.Errorf("batches of %d: %d tiles", size, got)
		}
		if got := strings.Count(text, "<h3>Batch "); got != len(p.Batches) {
			t.Errorf("batches of %d: %d batches on the timeline, want %d", size, got, len(p.Batches))
		}
	}
}

// What the timeline says of a moment is what the plan comes to then.
func TestTimeline(t *testing.T) {
	p := largePlan(t, 4, 3)
	p.NodeChanges[0].Nodes = p.NodeChanges[0].Nodes[:2]
	p.NodeChanges = append(p.NodeChanges,
		plan.NodeChange{Nodes: []string{p.Pool.Nodes[2].Name}, Before: plan.NodeFields{Labels: map[string]string{gate.AllocationLabel: "switching"}}},
		plan.NodeChange{Nodes: []string{p.Pool.Nodes[3].Name}, Before: plan.NodeFields{Labels: map[string]string{gate.AllocationLabel: "theirs"}}})
	tl := newTimeline(p)
	var got []string
	for _, s := range append(tl.Stages, tl.Last) {
		got = append(got, s.Title+" "+strings.Join(s.Squares, ""))
	}
	want := "Now ppnu, Batch 1 npnu, Batch 2 dnnn, After the run dddd"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
	if bar := tl.Stages[2].Bar; len(bar) != 2 || bar[0].N != 3 || bar[0].Kind != neither || bar[1].From != 3 || bar[1].N != 1 {
		t.Errorf("bar of batch 2: %+v", bar)
	}
	p.Operation = plan.Rollback
	if last := newTimeline(p).Last; last.Bar[0].Kind != onPlugin || last.Bar[0].N != 4 {
		t.Errorf("after a rollback: %+v", last.Bar)
	}
}

// hugePlan is too large for a comment in every part of it.
func hugePlan(t *testing.T) *plan.Plan {
	t.Helper()
	p := largePlan(t, 625, 50) // 5,000 evictions
	p.Findings = nil
	for i := range 500 {
		f := checks.Finding{Code: "DRM013", Severity: checks.Warning, Object: fmt.Sprintf("node/n-%d", i),
			Message: strings.Repeat("evidence of it ", 10), Remedy: "look at it"}
		if i%250 == 249 {
			f.Code, f.Severity = "DRM015", checks.Blocker
		}
		p.Findings = append(p.Findings, f)
	}
	huge := `[{"op":"add","path":"/x","value":"` + strings.Repeat("```\\n</details> ", 2_000) + `"}]`
	for i := range p.NodeSteps {
		p.NodeSteps[i].Changes = append(p.NodeSteps[i].Changes, plan.Change{Verb: "patch", Object: plan.Object{Kind: "Node", Name: "n"}, Patch: huge})
	}
	p.Shared = []plan.Step{{ID: "plugin-exclude", Changes: []plan.Change{{Verb: "apply", Object: plan.Object{Kind: "ConfigMap", Name: "c"},
		Body: strings.Repeat("key: ```\n", 20_000)}}}}
	return p
}

func TestMarkdownBudget(t *testing.T) {
	text := write(t, "markdown", hugePlan(t))
	n := utf8.RuneCountInString(text)
	if n > 60_000 || n < 50_000 {
		t.Errorf("%d characters, want at most 60,000 and most of them used", n)
	}
	wellFolded(t, text)
	first, _, _ := strings.Cut(text, "\n")
	if want := "**Blocked:** move pool gpu-a to DRA: nvidia.com/gpu by driver gpu.nvidia.com — 625 nodes in 14 batches, 5000 pods to evict, no pod outside the pool restarted, 2 blockers, 498 warnings"; first != want {
		t.Errorf("first line\n%s, want\n%s", first, want)
	}
	if strings.Count(text, "**BLOCKER** DRM015") != 2 {
		t.Error("a blocker was left out")
	}
	for _, part := range []string{"#### Findings (500)", "Batches (14)", "Pods to evict (5000)", "Changes of shared objects, in order (1)",
		"Steps on each node, in order (10)", "Objects as they will be (3)", "Settings, gate, driver, digests"} {
		if !strings.Contains(text, part) {
			t.Errorf("nothing of %q is left", part)
		}
	}
	// What the note says was left out, and what is there, is all there is.
	for _, c := range []struct{ what, item string }{
		{"500 findings", "\n- **"}, {"5000 evictions", "\n| `ip-"},
	} {
		m := regexp.MustCompile(`(\d+) of ` + c.what).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("no word of what is left out of %s", c.what)
			continue
		}
		left, _ := strconv.Atoi(m[1])
		all, _ := strconv.Atoi(strings.Fields(c.what)[0])
		if got := strings.Count(text, c.item); got+left != all || got < 20 {
			t.Errorf("%d of %s are there, %d left out", got, c.what, left)
		}
	}
	if !strings.Contains(text, "long texts cut short") || !strings.Contains(text, "`dramigrate plan show FILE -o html`") {
		t.Error("the note does not say that texts are cut, or what shows all")
	}
	// Without need nothing is left out, and nothing is said of it.
	if small := write(t, "markdown", planFile(t, "migrate")); strings.Contains(small, "Left out") {
		t.Error("a small plan has a note about what is left out")
	}
}

// A budget of any size is kept, and the folding with it; no name of a plan is too long.
func TestMarkdownBudgets(t *testing.T) {
	p := hugePlan(t)
	for _, budget := range []int{2_000, 20_000} {
		text := markdown(p, budget)
		if n := utf8.RuneCountInString(text); n > budget {
			t.Errorf("%d characters of %d", n, budget)
		}
		wellFolded(t, text)
	}
	p = hostilePlan(t)
	long := strings.Repeat(hostile, 100)
	p.Pool.Name, p.Digest, p.ToolVersion, p.Source.Note, p.Findings[0].Message, p.Batches[0].Nodes[0] = long, long, long, long, long, long
	p.Shared[0].Title, p.Settings.HelperImage = long, long
	text := write(t, "markdown", p)
	if n := utf8.RuneCountInString(text); n > MarkdownBudget {
		t.Errorf("%d characters", n)
	}
	wellFolded(t, text)
}

func TestGitHubAnnotations(t *testing.T) {
	p := hugePlan(t)
	text := write(t, "github", p)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 10 || !strings.HasPrefix(lines[0], "::error title=DRM015 blocker::node/n-249: ") ||
		!strings.HasPrefix(lines[1], "::error title=DRM015 blocker::node/n-499: ") || !strings.HasPrefix(lines[2], "::warning title=DRM013 warning::") {
		t.Fatalf("%d lines, the blockers not first:\n%s", len(lines), text)
	}
	if !strings.HasPrefix(lines[9], "::error title=dramigrate migrate plan::Blocked: ") || !strings.HasSuffix(lines[9], "; 491 more findings not annotated: 491 warnings") {
		t.Errorf("the last line: %s", lines[9])
	}
	p.Findings = nil
	if text := write(t, "github", p); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "::notice title=dramigrate migrate plan::Ready: ") {
		t.Errorf("without findings:\n%s", text)
	}
}

func TestCommandEscapes(t *testing.T) {
	if got := commandData("100%\r\na:b,c"); got != "100%25%0D%0Aa:b,c" {
		t.Errorf("data %q", got)
	}
	if got := commandProperty("100%\r\na:b,c"); got != "100%25%0D%0Aa%3Ab%2Cc" {
		t.Errorf("property %q", got)
	}
}

// Names that leave no room beside them do not make the table wider than it may be.
func TestPlanTableWidth(t *testing.T) {
	p := largePlan(t, 60, 10)
	p.Evictions[3].Pod = "a-namespace-of-some-length/" + strings.Repeat("pod", 80)
	p.Restarts = []plan.Restart{{Pod: "kube-system/nvidia-device-plugin-daemonset-abcde", Node: p.Pool.Nodes[0].Name, Why: "the template of its DaemonSet changes"}}
	p.Pool.Name = strings.Repeat("p", 120)
	var b strings.Builder
	if err := Plan(Sheet{Writer: colorprofile.NewWriter(&b, nil)}, p); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		// A word of a command is whole, because it is copied.
		if command := strings.TrimSpace(line); strings.HasPrefix(command, "`dramigrate rollback ppp") {
			continue
		}
		if n := lipgloss.Width(strings.TrimRight(line, "\n")); n > Width {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
	if !strings.Contains(b.String(), "\n  ip-10-0-0-0.eu-central-1.compute.internal\n    team-0/training-7d9f8b6c5-00000\n      holds nvidia.com/gpu") {
		t.Error("a pod's node, name and reason do not stand below each other")
	}
}
