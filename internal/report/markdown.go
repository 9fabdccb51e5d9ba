package report

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/words"
)

// Markdown writes a plan for a comment on a change: the verdict and the totals in the
// first line, then the findings, and all else folded. It has at most MarkdownBudget
// characters; what did not fit is counted in the second paragraph.
func Markdown(w io.Writer, p *plan.Plan) error {
	text := markdown(p, MarkdownBudget)
	_, err := io.WriteString(w, text)
	return err
}

// leftOutRoom is kept free for the paragraph that says what was left out.
const leftOutRoom = 1_000

func markdown(p *plan.Plan, budget int) string {
	m := &md{}
	head, sections := m.head(p), m.sections(p)
	text, left := pack(sections, budget-runes(head))
	if len(left) == 0 {
		return head + text
	}
	m = &md{cut: true}
	head, sections = m.head(p), m.sections(p)
	text, left = pack(sections, budget-runes(head)-leftOutRoom)
	if m.shortened > 0 {
		left = append(left, words.Plural(m.shortened, "long text", "long texts")+" cut short")
	}
	return head + fmt.Sprintf("> **Left out to stay within %s characters:** %s. The whole plan is in its file: `dramigrate plan show FILE -o html`, or `-o yaml`.\n\n",
		thousands(budget), strings.Join(left, "; ")) + text
}

// md renders texts; with cut, long ones are cut short and counted, so that one of them
// cannot push all others out of the budget.
type md struct {
	cut       bool
	shortened int
}

// The longest that a text in a line, and a block of code, are with cut.
const (
	mostInLine  = 600
	mostInBlock = 4_000
)

func (m *md) short(s string, most int) string {
	if !m.cut || runes(s) <= most {
		return s
	}
	m.shortened++
	return shorten(s, most)
}

func (m *md) text(s string) string { return mdText(m.short(Clean(s), mostInLine)) }
func (m *md) code(s string) string { return mdCode(m.short(Clean(s), mostInLine)) }
func (m *md) cell(s string) string { return mdCell(m.short(Clean(s), mostInLine)) }

func (m *md) block(indent, language, s string) string {
	return mdBlock(indent, language, m.short(s, mostInBlock))
}

// head is what no budget cuts.
func (m *md) head(p *plan.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s:** %s — %s\n\n", capital(string(verdictOf(p))), m.text(strings.TrimPrefix(headline(p), "Plan: ")), counts(p))
	fmt.Fprintf(&b, "Plan %s of cluster %s, Kubernetes %s, by dramigrate %s.\n\n",
		m.code(p.Digest), m.code(string(p.Cluster.UID)), m.code(p.Cluster.ServerVersion), m.code(p.ToolVersion))
	if p.Source != nil {
		fmt.Fprintf(&b, "**Not made from a cluster:** %s\n\n", m.text(p.Source.Note))
	}
	return b.String()
}

// sections are the document below its head, the most important part first.
func (m *md) sections(p *plan.Plan) []mdSection {
	all := []mdSection{
		m.findings(p.Findings),
		m.unknown(p),
		m.forecast(p.Forecast),
		m.batches(p),
		m.restarts(p.Restarts),
		m.evictions(p.Evictions),
		m.steps("Changes of shared objects, in order", p.Shared, true),
	}
	if len(p.Batches) > 0 || p.Pool == nil { // else nothing is done to any node
		for _, g := range stepGroups(p) {
			all = append(all, m.steps(g.Title, g.Steps, false))
		}
	}
	return append(all, m.diffs(p), m.facts(p))
}

// folded is a section behind a line that opens it.
func folded(summary, one, many string, share int) mdSection {
	return mdSection{
		one: one, many: many, share: share,
		open:  "<details><summary>" + html.EscapeString(Clean(summary)) + "</summary>\n\n",
		close: "\n</details>\n\n",
	}
}

// findings are not folded, but for those that only inform.
func (m *md) findings(list []checks.Finding) mdSection {
	s := mdSection{one: "finding", many: "findings", share: 18_000,
		open: fmt.Sprintf("#### Findings (%d)\n\n", len(list)), close: "\n"}
	for _, f := range worstFirst(list) {
		item := fmt.Sprintf("- **%s** %s %s: %s\n", strings.ToUpper(string(standing(f))), m.text(f.Code), m.code(f.Object), m.text(message(f)))
		if f.Remedy != "" {
			item += "  <br>→ " + m.text(f.Remedy) + "\n"
		}
		s.items = append(s.items, item)
	}
	return s
}

func (m *md) unknown(p *plan.Plan) mdSection {
	s := mdSection{one: "unseen part", many: "unseen parts", share: 3_000,
		open: fmt.Sprintf("#### Not seen (%d)\n\n", len(p.Unknown)), close: "\n"}
	for _, u := range byReason(p.Unknown) {
		parts := make([]string, len(u.Parts))
		for i := range u.Parts {
			parts[i] = m.code(u.Parts[i])
		}
		s.items = append(s.items, fmt.Sprintf("- %s: %s\n", strings.Join(parts, ", "), m.text(u.Reason)))
	}
	return s
}

func (m *md) forecast(f *plan.Forecast) mdSection {
	s := mdSection{one: "line of the forecast", many: "lines of the forecast", share: 3_000, open: "#### Forecast\n\n", close: "\n"}
	if f == nil {
		return s
	}
	for _, sentence := range f.Summary {
		s.items = append(s.items, "- "+m.text(sentence)+"\n")
	}
	for _, what := range f.Ignored {
		s.items = append(s.items, "- not taken into account: "+m.text(what)+"\n")
	}
	return s
}

func (m *md) batches(p *plan.Plan) mdSection {
	s := folded(fmt.Sprintf("Batches (%d)", len(p.Batches)), "batch or node left alone", "batches and nodes left alone", 5_000)
	for i, b := range p.Batches {
		names := make([]string, len(b.Nodes))
		for j, n := range b.Nodes {
			names[j] = mdCode(n)
		}
		list := strings.Join(names, ", ")
		if m.cut && runes(list) > mostInBlock {
			m.shortened++
			list = fmt.Sprintf("%s and %d more", names[0], len(names)-1)
		}
		s.items = append(s.items, fmt.Sprintf("%d. %s%s: %s\n", i+1, batchRole(p, b), words.Plural(len(b.Nodes), "node", "nodes"), list))
	}
	for i, k := range p.Skipped {
		lead := ""
		if i == 0 && len(p.Batches) > 0 {
			lead = "\n"
		}
		s.items = append(s.items, fmt.Sprintf("%s- %s is left alone: %s\n", lead, m.code(k.Node), m.text(k.Why)))
	}
	return s
}

const podTable = "| Node | Pod | Why |\n|---|---|---|\n"

func (m *md) restarts(list []plan.Restart) mdSection {
	s := folded(fmt.Sprintf("Pods restarted or removed (%d)", len(list)), "restart", "restarts", 5_000)
	s.open += podTable
	for _, r := range list {
		s.items = append(s.items, fmt.Sprintf("| %s | %s | %s |\n", m.cell(r.Node), m.cell(r.Pod), m.text(r.Why)))
	}
	return s
}

func (m *md) evictions(list []plan.Eviction) mdSection {
	s := folded(fmt.Sprintf("Pods to evict (%d)", len(list)), "eviction", "evictions", 6_000)
	s.open += podTable
	for _, e := range list {
		s.items = append(s.items, fmt.Sprintf("| %s | %s | %s |\n", m.cell(e.Node), m.cell(e.Pod), m.text(evictionWhy(e))))
	}
	return s
}

// steps have an item for each step and, below it, one for each of its changes.
func (m *md) steps(summary string, list []plan.Step, whole bool) mdSection {
	s := folded(fmt.Sprintf("%s (%d)", summary, len(list)), "step or change", "steps and changes", 8_000)
	for i, step := range list {
		var b strings.Builder
		number := fmt.Sprintf("%d. ", i+1)
		// What belongs to an item of a list stands where the item's text begins.
		indent := strings.Repeat(" ", len(number))
		fmt.Fprintf(&b, "%s**%s** %s\n", number, m.text(string(step.ID)), m.text(step.Title))
		if step.Target != nil && step.Target.Note != "" {
			fmt.Fprintf(&b, "%s- on %s: %s\n", indent, m.code(object(*step.Target)), m.text(step.Target.Note))
		}
		for _, need := range step.Needs {
			fmt.Fprintf(&b, "%s- needs: %s\n", indent, m.text(need))
		}
		for _, wait := range step.Waits {
			fmt.Fprintf(&b, "%s- waits at most %s for %s\n", indent, wait.Deadline.Duration, m.text(wait.For))
		}
		if step.Undo != "" {
			fmt.Fprintf(&b, "%s- undo: %s\n", indent, m.text(step.Undo))
		}
		s.items = append(s.items, b.String())
		for _, c := range step.Changes {
			s.items = append(s.items, m.change(indent, c, whole))
		}
	}
	return s
}

func (m *md) change(indent string, c plan.Change, whole bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s- does: %s %s", indent, m.text(c.Verb), m.code(object(c.Object)))
	if c.Object.Note != "" {
		fmt.Fprintf(&b, " (%s)", m.text(c.Object.Note))
	}
	ops := operations(c.Patch, whole)
	if c.Patch != "" && len(ops) == 0 {
		b.WriteString(": the tool's record alone")
	}
	b.WriteByte('\n')
	if len(ops) > 0 {
		lines := make([]string, len(ops))
		for i, op := range ops {
			lines[i] = strings.TrimSpace(fmt.Sprintf("%s %s %s", op.Op, op.Path, op.Value))
		}
		b.WriteString(m.block(indent+"  ", "", strings.Join(lines, "\n")))
	}
	if c.Body != "" {
		b.WriteString(m.block(indent+"  ", "yaml", c.Body))
	}
	return b.String()
}

func (m *md) diffs(p *plan.Plan) mdSection {
	list := objectDiffs(p)
	s := folded(fmt.Sprintf("Objects as they will be (%d)", len(list)), "object", "objects", 8_000)
	for _, o := range list {
		item := m.text(o.about) + "\n"
		if o.text != "" {
			item += m.block("", "diff", o.text)
		}
		s.items = append(s.items, item+"\n")
	}
	return s
}

func (m *md) facts(p *plan.Plan) mdSection {
	s := folded("Settings, gate, driver, digests", "setting", "settings", 2_000)
	for _, f := range facts(p) {
		s.items = append(s.items, fmt.Sprintf("- %s: %s\n", f.name, m.code(f.value)))
	}
	return s
}

// thousands writes a number with its thousands apart.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
