package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// hostile is text of a cluster that wants to be more than text: markup of every view,
// workflow commands, escape sequences, and characters that reorder or hide others.
const hostile = "`|</details>\n::error::x\n<script>alert(1)</script><img src=x onerror=y>\x1b[31m\u202e\u200b[l](https://e.example)@octocat #1 **b** ```\n{{.}}\" onload=\"z' &amp; %0A\xff"

// hostilePlan has it in every field that comes from a cluster, or that somebody who
// edits a plan can fill.
func hostilePlan(t *testing.T) *plan.Plan {
	t.Helper()
	p := planFile(t, "migrate")
	p.ToolVersion, p.Digest, p.Namespace, p.Resource = hostile, hostile, hostile, hostile
	p.Cluster.UID, p.Cluster.ServerVersion = hostile, hostile
	p.Pool.Name, p.Gate.Why, p.Driver.Name, p.Driver.Source = hostile, hostile, hostile, hostile
	p.Settings.HelperImage = hostile
	p.Source = &cluster.Source{Note: hostile}
	p.Batches = []plan.Batch{{Nodes: []string{hostile}}}
	p.NodeChanges = []plan.NodeChange{{Nodes: []string{hostile}, After: plan.NodeFields{Labels: map[string]string{hostile: hostile}}}}
	p.Skipped = []plan.Skip{{Node: hostile, Why: hostile}}
	p.Findings = []checks.Finding{
		{Code: hostile, Severity: checks.Blocker, Object: hostile, Message: hostile, Remedy: hostile},
		{Code: hostile, Severity: checks.Info, Object: hostile, Message: hostile, Remedy: hostile},
	}
	p.Unknown = []cluster.Unknown{{Part: hostile, Reason: hostile}}
	p.Forecast = &plan.Forecast{Summary: []string{hostile}, Ignored: []string{hostile}}
	p.Evictions = []plan.Eviction{{Pod: hostile, Node: hostile, Why: hostile, Owner: cluster.Owner{Kind: hostile, Name: hostile}, Budgets: []string{hostile}}}
	p.Restarts = []plan.Restart{{Pod: hostile, Node: hostile, Why: hostile}}
	p.Inputs.DaemonSets = map[string]string{hostile: hostile}
	o := plan.Object{Kind: hostile, Namespace: hostile, Name: hostile, Note: hostile}
	steps := []plan.Step{{ID: hostile, Title: hostile, Target: &o, Needs: []string{hostile}, Waits: []plan.Wait{{For: hostile}}, Undo: hostile,
		Changes: []plan.Change{
			{Verb: hostile, Object: o, Body: hostile}, {Verb: "delete", Object: o},
			{Verb: "patch", Object: o, Patch: hostile},
			{Verb: "patch", Object: o, Patch: `[{"op":"add","path":"/x","value":"` + "```\\u001b</pre><script>" + `"}]`},
			{Verb: "patch", Object: o, Patch: `[{"op":"test","path":"/x/y~1z","value":"</pre>"},{"op":"replace","path":"/x/y~1z","value":"` + "```" + `"}]`},
		}}}
	p.Shared, p.NodeSteps = steps, steps
	return p
}

func write(t *testing.T, name string, p *plan.Plan) string {
	t.Helper()
	for _, v := range Views() {
		if v.Name == name {
			var b bytes.Buffer
			if err := v.Write(Sheet{Writer: &b}, p); err != nil {
				t.Fatal(err)
			}
			return unstyled(b.String())
		}
	}
	t.Fatalf("no view %s", name)
	return ""
}

// unstyled takes away the one style that a whole line may have; what else a text brings
// of escape sequences stays.
func unstyled(text string) string {
	return regexp.MustCompile(`(?m)^\x1b\[[0-9;]+m(.*)\x1b\[m$`).ReplaceAllString(text, "$1")
}

// In every view for people, nothing is left that moves a cursor or hides text.
func TestNoViewShowsWhatIsUnsafe(t *testing.T) {
	for _, name := range []string{"markdown", "html", "diff", "github"} {
		for line := range strings.Lines(write(t, name, hostilePlan(t))) {
			if line = strings.TrimRight(line, "\n"); Clean(line) != line {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}

func TestGitHubHostile(t *testing.T) {
	text := write(t, "github", hostilePlan(t))
	if n := strings.Count(text, "\n"); n != 3 {
		t.Errorf("%d lines, want one for each finding and one for the verdict:\n%s", n, text)
	}
	for line := range strings.Lines(text) {
		// A property ends at a comma or a colon, a command's head at the second "::".
		if !regexp.MustCompile(`^::(error|notice) title=[^:,\n]+::[^\n]+\n$`).MatchString(line) {
			t.Errorf("no command: %q", line)
		}
	}
	if strings.Contains(text, "%0A") {
		t.Errorf("a %% of the cluster's text was not escaped:\n%s", text)
	}
}

func TestMarkdownHostile(t *testing.T) {
	text := write(t, "markdown", hostilePlan(t))
	wellFolded(t, text)
	for i, part := range prose(text) {
		for _, bad := range []string{"<script", "<img", "](", "@octocat", "#1 ", "**b**", "`"} {
			if strings.Contains(part, bad) {
				t.Errorf("part %d of the prose has %q:\n%s", i, bad, part)
			}
		}
	}
	for line := range strings.Lines(text) {
		if cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); strings.HasPrefix(line, "| ") && cells != 4 {
			t.Errorf("a row with %d bars: %s", cells, line)
		}
	}
}

// prose is Markdown, line by line, without what stands in it as code.
func prose(text string) []string {
	var out []string
	lines := strings.Split(text, "\n")
	fence := ""
	for _, l := range lines {
		trimmed := strings.TrimLeft(l, " ")
		switch {
		case fence != "":
			if trimmed == fence {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"):
			fence = strings.TrimRight(trimmed, "abcdefghijklmnopqrstuvwxyz")
		default:
			out = append(out, withoutSpans(l))
		}
	}
	if fence != "" {
		out = append(out, "a block of code does not end: `")
	}
	return out
}

// withoutSpans removes code spans as CommonMark finds them: a run of backticks that is
// not escaped, up to the next run of the same length.
func withoutSpans(l string) string {
	var b strings.Builder
	for i := 0; i < len(l); {
		if l[i] == '\\' && i+1 < len(l) {
			b.WriteByte('.') // is only itself
			i += 2
			continue
		}
		if l[i] != '`' {
			b.WriteByte(l[i])
			i++
			continue
		}
		n := 0
		for i+n < len(l) && l[i+n] == '`' {
			n++
		}
		end := -1
		for j := i + n; j < len(l); {
			if l[j] != '`' {
				j++
				continue
			}
			m := 0
			for j+m < len(l) && l[j+m] == '`' {
				m++
			}
			if m == n {
				end = j + m
				break
			}
			j += m
		}
		if end < 0 {
			b.WriteString(l[i : i+n])
			i += n
			continue
		}
		i = end
	}
	return b.String()
}

// wellFolded wants every fold to begin and to end, none inside another.
func wellFolded(t *testing.T, text string) {
	t.Helper()
	open := false
	for _, part := range prose(text) {
		begins, ends := strings.Count(part, "<details>"), strings.Count(part, "</details>")
		switch {
		case begins == 1 && !open && ends == 0:
			open = true
		case ends == 1 && open && begins == 0:
			open = false
		case begins+ends > 0:
			t.Fatalf("a fold begins or ends where it must not: %s", part)
		}
	}
	if open {
		t.Error("a fold does not end")
	}
}

// The page has the elements of its template and no other.
func TestHTMLHostile(t *testing.T) {
	text := write(t, "html", hostilePlan(t))
	for _, bad := range []string{"<script", "<img", "onload=\"", "onerror=y>", "</pre><"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(text, "&lt;script&gt;alert(1)&lt;/script&gt;") || !strings.Contains(text, `\u202e`) {
		t.Error("the text itself is not on the page")
	}
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	known := " html head meta link title style body a header p h1 h2 h3 strong dl div dt dd nav ul li main section details summary span b ol small i svg use symbol defs rect table thead tbody tr th td code pre footer "
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if !strings.Contains(known, " "+element.Name.Local+" ") {
			t.Errorf("element %s", element.Name.Local)
		}
		for _, a := range element.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" || a.Name.Local == "src" ||
				a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#") && a.Value != "data:," {
				t.Errorf("attribute %s=%q of %s", a.Name.Local, a.Value, element.Name.Local)
			}
		}
	}
}
