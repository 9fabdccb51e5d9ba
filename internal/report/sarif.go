package report

import (
	"io"
	"slices"

	"github.com/dramigrate/dramigrate/internal/checks"
)

// The part of SARIF 2.1.0 that code-scanning services read
// (docs.oasis-open.org/sarif/sarif/v2.1.0).
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID    string    `json:"id"`
	Short sarifText `json:"shortDescription"`
	Full  sarifText `json:"fullDescription"`
	Help  sarifText `json:"help"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	RuleIndex int             `json:"ruleIndex"`
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
	// Suppressions say that a person has decided about the finding.
	Suppressions []sarifSuppression `json:"suppressions,omitempty"`
}

type sarifSuppression struct {
	Kind          string `json:"kind"`
	Justification string `json:"justification"`
}

type sarifLocation struct {
	// Physical is there because services refuse a result without one; the object of a
	// cluster has no file.
	Physical sarifPhysical  `json:"physicalLocation"`
	Logical  []sarifLogical `json:"logicalLocations"`
}

type sarifPhysical struct {
	Artifact struct {
		URI string `json:"uri"`
	} `json:"artifactLocation"`
}

type sarifLogical struct {
	Name string `json:"fullyQualifiedName"`
	Kind string `json:"kind"`
}

// CheckSARIF writes a report as SARIF. What could not be seen has the level of a
// blocker: it stops a run as well.
func CheckSARIF(w io.Writer, r *checks.Report) error {
	run := sarifRun{Results: []sarifResult{}, Tool: sarifTool{Driver: sarifDriver{
		Name: "dramigrate", InformationURI: "https://dramigrate.dev", Rules: []sarifRule{},
	}}}
	rules := &run.Tool.Driver.Rules
	for _, f := range r.Findings {
		at := slices.IndexFunc(*rules, func(rule sarifRule) bool { return rule.ID == f.Code })
		if at < 0 {
			at = len(*rules)
			c, _ := checks.Find(f.Code)
			*rules = append(*rules, sarifRule{ID: f.Code, Short: sarifText{c.Title}, Full: sarifText{c.Why}, Help: sarifText{c.Fix}})
		}
		run.Results = append(run.Results, sarifResultOf(f, at))
	}
	return JSON(w, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

func sarifResultOf(f checks.Finding, rule int) sarifResult {
	text := Clean(f.Object + ": " + f.Message)
	if f.Remedy != "" {
		text += "\n" + Clean(f.Remedy)
	}
	level := "note"
	switch f.Severity {
	case checks.Blocker, checks.Unknown:
		level = "error"
	case checks.Warning:
		level = "warning"
	}
	l := sarifLocation{Logical: []sarifLogical{{Name: Clean(f.Object), Kind: "object"}}}
	l.Physical.Artifact.URI = "cluster/" + Clean(f.Object)
	out := sarifResult{RuleID: f.Code, RuleIndex: rule, Level: level, Message: sarifText{text}, Locations: []sarifLocation{l}}
	if f.Skipped != "" {
		out.Suppressions = []sarifSuppression{{Kind: "external", Justification: Clean(f.Skipped)}}
	}
	return out
}
