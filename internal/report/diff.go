package report

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/words"
)

// Diff writes what becomes of each object as unified diffs: shared objects whole or in
// the fields that their patch tests and writes, nodes in the fields that the run
// writes and as they are when it has ended. Lines that begin with # are no part of a
// diff.
func Diff(s Sheet, p *plan.Plan) error {
	d := newPage(s)
	for _, l := range wrap(Clean(fmt.Sprintf("%s. %s: %s. Digest %s.", headline(p), verdictOf(p), counts(p), p.Digest)), d.sheet.prose()-2) {
		d.line("# " + l)
	}
	for _, o := range objectDiffs(p) {
		d.line("")
		for _, l := range wrap(Clean(o.about), d.sheet.prose()-2) {
			d.line("# " + l)
		}
		d.unified(o.text)
	}
	return d.err
}

// unified writes a diff. Its colours repeat what each line begins with, and take in
// nothing else: what is copied is the diff.
func (d *page) unified(text string) {
	hunk := false
	for l := range strings.Lines(text) {
		l = Clean(strings.TrimRight(l, "\n"))
		style := lipgloss.NewStyle()
		switch {
		case strings.HasPrefix(l, "@@"):
			hunk, style = true, d.theme.hunk
		case !hunk && (strings.HasPrefix(l, "---") || strings.HasPrefix(l, "+++")):
			style = d.theme.title
		case hunk && strings.HasPrefix(l, "-"):
			style = d.theme.removed
		case hunk && strings.HasPrefix(l, "+"):
			style = d.theme.added
		}
		d.line(style.Render(l))
	}
}

// objectDiff is what becomes of one object, or of nodes that are alike.
type objectDiff struct {
	// title names it, about says what happens to it.
	title, about string
	// text is the unified diff; empty if the plan does not hold what is written.
	text string
}

// objectDiffs are in the order in which a run changes the objects.
func objectDiffs(p *plan.Plan) []objectDiff {
	var out []objectDiff
	for _, s := range p.Shared {
		for _, c := range s.Changes {
			out = append(out, changeDiff(s, c))
		}
	}
	for _, c := range p.NodeChanges {
		out = append(out, nodeDiff(c))
	}
	for _, s := range p.NodeSteps {
		for _, c := range s.Changes {
			// Pods that a step makes and removes again, and pods that are evicted, are
			// no objects that stay; the nodes stand above.
			if c.Body != "" {
				out = append(out, changeDiff(s, c))
			}
		}
	}
	return out
}

func changeDiff(s plan.Step, c plan.Change) objectDiff {
	o := objectDiff{title: object(c.Object), about: fmt.Sprintf("step %s: %s %s", s.ID, c.Verb, object(c.Object))}
	if c.Object.Note != "" {
		o.about += " (" + c.Object.Note + ")"
	}
	name := fileName(c.Object)
	switch {
	case c.Body != "":
		o.text = unified("", name, "", c.Body)
	case c.Patch != "":
		if c.Object.APIVersion == "" && c.Object.Kind == "DaemonSet" {
			c.Object.APIVersion = "apps/v1"
		}
		before, after, err := patched(c)
		if err != nil {
			o.about += fmt.Sprintf(": shown as a patch, %v: %s", err, c.Patch)
			break
		}
		o.about += ", in the fields that the patch tests and writes"
		o.text = unified(name, name, before, after)
	case c.Verb == "delete":
		o.about += ": of what is deleted, the plan holds the name"
		o.text = unified(name, "", yamlOf(identity(c.Object)), "")
	default:
		o.about += ": what is written, only the run knows"
	}
	return o
}

func nodeDiff(c plan.NodeChange) objectDiff {
	name, what := "<each of them>", words.Plural(len(c.Nodes), "node", "nodes, all alike")
	if len(c.Nodes) == 1 {
		name = c.Nodes[0]
	}
	o := plan.Object{APIVersion: "v1", Kind: "Node", Name: name}
	file := fileName(plan.Object{Kind: "Node", Name: c.Nodes[0]})
	text := unified(file, file, nodeYAML(o, c.Before), nodeYAML(o, c.After))
	about := fmt.Sprintf("%s, when the run has ended: %s", what, strings.Join(c.Nodes, ", "))
	if text == "" {
		about += ": as before"
	}
	return objectDiff{title: what, about: about, text: text}
}

func nodeYAML(o plan.Object, f plan.NodeFields) string {
	node := identity(o)
	metadata := node["metadata"].(map[string]any)
	if len(f.Labels) > 0 {
		metadata["labels"] = f.Labels
	}
	if len(f.Annotations) > 0 {
		metadata["annotations"] = f.Annotations
	}
	spec := map[string]any{}
	if f.Unschedulable {
		spec["unschedulable"] = true
	}
	if len(f.Taints) > 0 {
		spec["taints"] = f.Taints
	}
	if len(spec) > 0 {
		node["spec"] = spec
	}
	return yamlOf(node)
}

// identity is an object with nothing but its name.
func identity(o plan.Object) map[string]any {
	metadata := map[string]any{"name": o.Name}
	if o.Namespace != "" {
		metadata["namespace"] = o.Namespace
	}
	out := map[string]any{"kind": o.Kind, "metadata": metadata}
	if o.APIVersion != "" {
		out["apiVersion"] = o.APIVersion
	}
	return out
}

// fileName is where the object would lie in a folder of manifests.
func fileName(o plan.Object) string {
	return strings.ReplaceAll(Clean(object(o)), " ", "_") + ".yaml"
}

// unified is the diff of two texts; an empty name is a file that is not there.
func unified(oldName, newName, before, after string) string {
	from, to := "a/"+oldName, "b/"+newName
	if oldName == "" {
		from = "/dev/null"
	}
	if newName == "" {
		to = "/dev/null"
	}
	return string(diff.Diff(from, []byte(before), to, []byte(after)))
}

func yamlOf(v any) string {
	data, err := yaml.Marshal(v)
	if err != nil {
		return err.Error() + "\n"
	}
	return string(data)
}
