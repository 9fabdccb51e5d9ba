package plan

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/checks"
)

// Whoever edits a plan can give it the digest of what it says now.
func TestParseRefusesWhatIsNoPlan(t *testing.T) {
	for _, c := range []struct {
		title  string
		change func(*Plan)
		want   string
	}{
		{"no such operation", func(p *Plan) { p.Operation = "destroy" }, `operation "destroy"`},
		{"no pool", func(p *Plan) { p.Pool = nil }, "has no pool"},
		{"a pool that is not moved", func(p *Plan) { p.Operation = Prepare }, "for the whole cluster"},
		{"a node twice", func(p *Plan) { p.Batches[1].Nodes[0] = "a-1" }, "batch 2: node a-1"},
		{"a node of elsewhere", func(p *Plan) { p.Batches[0].Nodes[0] = "b-1" }, "batch 1: node b-1"},
		{"a severity", func(p *Plan) { p.Findings = append(p.Findings, finding(checks.Severity("fine"))) }, `severity "fine"`},
		{"a verb", func(p *Plan) { p.NodeSteps[0].Changes[0].Verb = "exec" }, `verb "exec"`},
		{"a patch", func(p *Plan) { p.NodeSteps[0].Changes[0].Patch = "[" }, "not JSON"},
	} {
		t.Run(c.title, func(t *testing.T) {
			p := savedPlan(t)
			c.change(p)
			for _, edited := range []bool{true, false} {
				if !edited {
					p.Digest, _ = ComputeDigest(p)
				}
				data, err := yaml.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				_, _, err = ParseEdited(data)
				var file *FileError
				if !errors.As(err, &file) || !strings.Contains(err.Error(), c.want) || file.Edited != edited {
					t.Errorf("error %v, want one with %q, edited %v", err, c.want, edited)
				}
			}
		})
	}
}

func TestParseEdited(t *testing.T) {
	p := savedPlan(t)
	data, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, edited, err := ParseEdited(data); err != nil || edited != nil || got.Digest != p.Digest {
		t.Errorf("as it was written: plan %v, edited %v, error %v", got, edited, err)
	}
	text := strings.Replace(string(data), "maxUnavailable: 50%", "maxUnavailable: 100%", 1)
	got, edited, err := ParseEdited([]byte(text))
	if err != nil || edited == nil || !strings.Contains(edited.Error(), p.Digest) || got.Settings.MaxUnavailable != "100%" {
		t.Errorf("edited: plan %v, edited %v, error %v", got, edited, err)
	}
}

func finding(s checks.Severity) checks.Finding {
	return checks.Finding{Code: "DRM099", Severity: s, Object: "node/x"}
}
