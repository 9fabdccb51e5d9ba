package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// mostAnnotations is how many findings become annotations. GitHub shows 10 of a level
// for a step and drops the others without a word; the tenth is the verdict.
const mostAnnotations = 9

// GitHub writes workflow commands that a GitHub Actions runner turns into annotations
// of the run: the worst findings, and one line with the verdict, the totals and how
// many findings were left out
// (docs.github.com, "Workflow commands for GitHub Actions", "Setting an error message").
func GitHub(w io.Writer, p *plan.Plan) error {
	list := worstFirst(p.Findings)
	for _, f := range list[:min(len(list), mostAnnotations)] {
		message := f.Object + ": " + f.Message
		if f.Remedy != "" {
			message += " -> " + f.Remedy
		}
		if err := annotation(w, f.Severity, fmt.Sprintf("%s %s", f.Code, f.Severity), message); err != nil {
			return err
		}
	}
	level := checks.Info
	switch verdictOf(p) {
	case isBlocked, isUnseen:
		level = checks.Blocker
	case isCareful:
		level = checks.Warning
	}
	message := fmt.Sprintf("%s: %s: %s", capital(string(verdictOf(p))), strings.TrimPrefix(headline(p), "Plan: "), counts(p))
	if rest := list[min(len(list), mostAnnotations):]; len(rest) > 0 {
		message += fmt.Sprintf("; %s not annotated: %s", plural(len(rest), "more finding", "more findings"), countsOf(rest))
	}
	return annotation(w, level, fmt.Sprintf("dramigrate %s plan", p.Operation), message)
}

// countsOf says how many findings of each severity there are.
func countsOf(list []checks.Finding) string {
	count := bySeverity(list)
	var parts []string
	for _, s := range severities() {
		if n := count[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

func annotation(w io.Writer, s checks.Severity, title, message string) error {
	level := "notice"
	switch s {
	case checks.Blocker, checks.Unknown:
		level = "error"
	case checks.Warning:
		level = "warning"
	}
	_, err := fmt.Fprintf(w, "::%s title=%s::%s\n", level, commandProperty(Clean(title)), commandData(Clean(message)))
	return err
}

// commandData escapes the message of a workflow command, as the runner decodes it
// (actions/toolkit, packages/core/src/command.ts, escapeData).
func commandData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// commandProperty escapes the value of a property (escapeProperty, there).
func commandProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
