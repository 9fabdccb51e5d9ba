package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"strings"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// htmlPage is what the template shows.
type htmlPage struct {
	*plan.Plan
	Style       template.CSS
	StyleSource string
	Headline    string
	Verdict     string
	Tone        string // class of the verdict: bad, unknown, warn, good or calm
	Counts      string
	Figures     []figure
	Severe      []checks.Finding // all but those that only inform
	Notes       []checks.Finding
	Timeline    *timeline
	Nodes       []htmlNode // those with pods to evict
	SharedSteps []htmlStep
	EachNode    []htmlStepGroup
	Diffs       []htmlDiff
	Facts       []htmlFact
}

// figure is one of the totals.
type figure struct {
	Value string
	Label string
	Tone  string
}

// htmlNode are the pods that are evicted from one node.
type htmlNode struct {
	Node  string
	Batch int
	Pods  []plan.Eviction
}

type htmlFact struct{ Name, Value string }

type htmlStep struct {
	plan.Step
	Changes []htmlChange
}

type htmlChange struct {
	plan.Change
	Operations []string // what a patch does, without what it tests of nodes
	Exact      string   // the patch whole, an operation a line
}

// htmlStepGroup are the steps on nodes of one kind.
type htmlStepGroup struct {
	Title string
	Steps []htmlStep
}

type htmlDiff struct {
	Title, About string
	Lines        []diffLine
}

// diffLine is a line of a unified diff and what it is: add, del, hunk or file.
type diffLine struct{ Kind, Text string }

func newHTMLPage(p *plan.Plan) *htmlPage {
	h := &htmlPage{
		Plan: p, Style: template.CSS(htmlStyle), StyleSource: styleSource(),
		Headline: capital(strings.TrimPrefix(headline(p), "Plan: ")), Verdict: capital(string(verdictOf(p))),
		Counts: counts(p), Timeline: newTimeline(p),
		SharedSteps: htmlSteps(p.Shared, true),
	}
	if len(p.Batches) > 0 {
		for _, g := range stepGroups(p) {
			h.EachNode = append(h.EachNode, htmlStepGroup{Title: g.Title, Steps: htmlSteps(g.Steps, false)})
		}
	}
	h.Tone = map[verdict]string{isBlocked: "bad", isUnseen: "unknown", isCareful: "warn", isReady: "good", isNothing: "calm"}[verdictOf(p)]
	for _, f := range worstFirst(p.Findings) {
		if f.Severity == checks.Info || f.Skipped != "" {
			f.Message = message(f)
			h.Notes = append(h.Notes, f)
		} else {
			h.Severe = append(h.Severe, f)
		}
	}
	batchOf := map[string]int{}
	for i, b := range p.Batches {
		for _, n := range b.Nodes {
			batchOf[n] = i + 1
		}
	}
	for _, e := range p.Evictions {
		if n := len(h.Nodes); n == 0 || h.Nodes[n-1].Node != e.Node {
			h.Nodes = append(h.Nodes, htmlNode{Node: e.Node, Batch: batchOf[e.Node]})
		}
		last := &h.Nodes[len(h.Nodes)-1]
		last.Pods = append(last.Pods, e)
	}
	for _, o := range objectDiffs(p) {
		d := htmlDiff{Title: o.title, About: o.about}
		for l := range strings.Lines(o.text) {
			l = strings.TrimRight(l, "\n")
			d.Lines = append(d.Lines, diffLine{kindOfLine(l), l})
		}
		h.Diffs = append(h.Diffs, d)
	}
	for _, f := range facts(p) {
		h.Facts = append(h.Facts, htmlFact{capital(f.name), f.value})
	}
	h.figures()
	return h
}

// figures are the totals as tiles: first what is moved, then what speaks against it.
func (h *htmlPage) figures() {
	add := func(n int, one, many, tone string) {
		label := many
		if n == 1 {
			label = one
		}
		if n == 0 {
			tone = ""
		}
		h.Figures = append(h.Figures, figure{thousands(n), label, tone})
	}
	if h.Pool != nil {
		add(nodesIn(h.Plan), "node moves", "nodes move", "")
		add(len(h.Batches), "batch", "batches", "")
		add(len(h.Evictions), "pod evicted", "pods evicted", "")
	} else {
		changes := 0
		for _, s := range h.Shared {
			changes += len(s.Changes)
		}
		add(changes, "shared change", "shared changes", "")
		add(len(h.Restarts), "pod restarted", "pods restarted", "")
	}
	count := bySeverity(h.Findings)
	add(count[checks.Blocker], "blocker", "blockers", "bad")
	add(count[checks.Unknown], "unknown", "unknown", "unknown")
	add(count[checks.Warning], "warning", "warnings", "warn")
}

func htmlSteps(list []plan.Step, whole bool) []htmlStep {
	out := make([]htmlStep, len(list))
	for i, s := range list {
		out[i] = htmlStep{Step: s}
		for _, c := range s.Changes {
			h := htmlChange{Change: c}
			for _, op := range operations(c.Patch, whole) {
				h.Operations = append(h.Operations, strings.TrimSpace(fmt.Sprintf("%s %s %s", op.Op, op.Path, op.Value)))
			}
			h.Exact = operationLines(c.Patch)
			out[i].Changes = append(out[i].Changes, h)
		}
	}
	return out
}

// operationLines is a JSON patch with each of its operations on a line.
func operationLines(patch string) string {
	var list []json.RawMessage
	if json.Unmarshal([]byte(patch), &list) != nil || len(list) == 0 {
		return patch
	}
	lines := make([]string, len(list))
	for i, op := range list {
		lines[i] = string(op)
	}
	return "[" + strings.Join(lines, ",\n ") + "]"
}

func kindOfLine(l string) string {
	switch {
	case strings.HasPrefix(l, "diff "), strings.HasPrefix(l, "--- "), strings.HasPrefix(l, "+++ "):
		return "file"
	case strings.HasPrefix(l, "@@"):
		return "hunk"
	case strings.HasPrefix(l, "+"):
		return "add"
	case strings.HasPrefix(l, "-"):
		return "del"
	default:
		return ""
	}
}
