package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/jsonpatch"
	"github.com/dramigrate/dramigrate/internal/plan"
)

func (d *page) sharedSteps(p *plan.Plan) {
	if len(p.Shared) == 0 {
		return
	}
	d.heading("Changes of shared objects, in order")
	for i, s := range p.Shared {
		d.step(i+1, s, true)
	}
}

func (d *page) nodeSteps(p *plan.Plan) {
	if p.Pool == nil || len(p.Batches) == 0 {
		return
	}
	for _, g := range stepGroups(p) {
		d.heading(g.Title)
		for i, s := range g.Steps {
			d.step(i+1, s, false)
		}
	}
}

// step writes one step. The patches of shared objects are shown whole. Those of nodes
// are alike in what they test and in the record that they write; only what they
// change is shown, and the rest stands in the YAML.
func (d *page) step(n int, s plan.Step, whole bool) {
	plain := lipgloss.NewStyle()
	d.para(fmt.Sprintf("  %-3d %s  ", n, s.ID), s.Title, plain)
	if s.Target != nil && s.Target.Note != "" {
		d.para("      on     ", object(*s.Target)+": "+s.Target.Note, plain)
	}
	for _, need := range s.Needs {
		d.para("      needs  ", need, d.theme.dim)
	}
	for _, c := range s.Changes {
		if s.Target != nil && c.Object == *s.Target {
			c.Object.Note = ""
		}
		d.change(c, whole)
	}
	for _, wait := range s.Waits {
		d.para("      waits  ", fmt.Sprintf("at most %s for %s", wait.Deadline.Duration, wait.For), plain)
	}
	if s.Undo != "" {
		d.para("      undo   ", s.Undo, d.theme.dim)
	}
}

func (d *page) change(c plan.Change, whole bool) {
	text := c.Verb + " " + object(c.Object)
	if c.Object.Note != "" {
		text += " (" + c.Object.Note + ")"
	}
	ops := operations(c.Patch, whole)
	if c.Patch != "" && len(ops) == 0 {
		text += ": the tool's record alone"
	}
	d.para("      does   ", text, d.theme.title)
	for _, op := range ops {
		d.operation(op)
	}
	d.document("               ", c.Body)
}

// operation writes one of a patch, its value in YAML where it is too long for a line.
func (d *page) operation(op patchOperation) {
	const indent = "               "
	line := strings.TrimSpace(fmt.Sprintf("%s %s %s", op.Op, op.Path, op.Value))
	if lipgloss.Width(indent+line) > d.sheet.prose() {
		if value, err := yaml.JSONToYAML(op.Value); err == nil && bytes.Count(value, []byte("\n")) > 1 {
			d.para(indent, op.Op+" "+op.Path, lipgloss.NewStyle())
			d.document(indent+"  ", string(value))
			return
		}
	}
	d.para(indent, line, lipgloss.NewStyle())
}

// document writes YAML. Lines that are too long go on further in, as YAML allows it.
func (d *page) document(indent, text string) {
	for l := range strings.Lines(text) {
		l = Clean(strings.TrimRight(l, "\n"))
		if lipgloss.Width(indent+l) <= d.sheet.prose() {
			d.line(indent + l)
			continue
		}
		body := strings.TrimLeft(l, " ")
		lead := indent + strings.Repeat(" ", len(l)-len(body))
		for i, part := range wrap(body, d.sheet.prose()-lipgloss.Width(lead)-4) {
			if i > 0 {
				part = "    " + part
			}
			d.line(lead + part)
		}
	}
}

// patchOperation is one operation of a JSON patch.
type patchOperation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// operations are a JSON patch's; without whole, only those that change more than the
// tool's record.
func operations(patch string, whole bool) []patchOperation {
	var list []patchOperation
	if patch == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(patch), &list); err != nil {
		return []patchOperation{{Op: patch}}
	}
	record := jsonpatch.Path("/metadata/annotations", cluster.StateAnnotation)
	return slices.DeleteFunc(list, func(op patchOperation) bool {
		return !whole && (op.Op == "test" || op.Path == record)
	})
}
