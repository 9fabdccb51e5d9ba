package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/checks"
)

// validate says what keeps a plan from a file from being one: whoever edits a plan can
// give it any content and the digest of it.
func (p *Plan) validate() error {
	switch p.Operation {
	case Migrate, Rollback:
		if p.Pool == nil || p.Pool.Name == "" {
			return fmt.Errorf("operation %s: has no pool", p.Operation)
		}
	case Prepare, Unprepare:
		if p.Pool != nil || len(p.Batches) > 0 {
			return fmt.Errorf("operation %s: is for the whole cluster, and names a pool or batches", p.Operation)
		}
	default:
		return fmt.Errorf("operation %q: must be %s, %s, %s or %s", p.Operation, Prepare, Migrate, Rollback, Unprepare)
	}
	if p.Into != nil && (p.Pool == nil || p.Into.Name == "") {
		return fmt.Errorf("operation %s: into a pool without a name, or from none", p.Operation)
	}
	if err := p.validateBatches(); err != nil {
		return err
	}
	for _, f := range p.Findings {
		switch f.Severity {
		case checks.Blocker, checks.Warning, checks.Info, checks.Unknown:
		default:
			return fmt.Errorf("finding %s on %s: severity %q", f.Code, f.Object, f.Severity)
		}
	}
	for _, s := range slices.Concat(p.Shared, p.NodeSteps) {
		for _, c := range s.Changes {
			if err := c.validate(); err != nil {
				return fmt.Errorf("step %s: %w", s.ID, err)
			}
		}
	}
	return nil
}

// validateBatches wants every node of a batch to be one of the pool's, and once.
func (p *Plan) validateBatches() error {
	left := map[string]bool{}
	for _, n := range p.AllNodes() {
		left[n.Name] = true
	}
	for i, b := range p.Batches {
		for _, n := range b.Nodes {
			if !left[n] {
				return fmt.Errorf("batch %d: node %s is in another batch as well, or not in the pool", i+1, n)
			}
			left[n] = false
		}
	}
	return nil
}

func (c Change) validate() error {
	switch c.Verb {
	case "create", "apply", "update", "patch", "delete", "evict", VerbAsk:
	default:
		return fmt.Errorf("change of %s %s: verb %q", c.Object.Kind, c.Object.Name, c.Verb)
	}
	if c.Patch != "" && !json.Valid([]byte(c.Patch)) {
		return fmt.Errorf("change of %s %s: its patch is not JSON", c.Object.Kind, c.Object.Name)
	}
	return nil
}
