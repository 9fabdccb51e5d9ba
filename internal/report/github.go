package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/words"
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
		if err := findingAnnotation(w, f); err != nil {
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
	text := fmt.Sprintf("%s: %s: %s", capital(string(verdictOf(p))), strings.TrimPrefix(headline(p), "Plan: "), counts(p))
	if rest := list[min(len(list), mostAnnotations):]; len(rest) > 0 {
		text += fmt.Sprintf("; %s not annotated: %s", words.Plural(len(rest), "more finding", "more findings"), countsOf(rest))
	}
	return annotation(w, level, fmt.Sprintf("dramigrate %s plan", p.Operation), text)
}

func findingAnnotation(w io.Writer, f checks.Finding) error {
	text := f.Object + ": " + message(f)
	if f.Remedy != "" {
		text += " -> " + f.Remedy
	}
	return annotation(w, standing(f), fmt.Sprintf("%s %s", f.Code, standing(f)), text)
}

// countsOf says how many findings of each severity there are.
func countsOf(list []checks.Finding) string {
	count := bySeverity(list)
	var parts []string
	for _, s := range standings() {
		if n := count[s]; n > 0 {
			parts = append(parts, amount(n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// amount is how many findings of a severity there are, in words.
func amount(n int, s checks.Severity) string {
	if n > 1 && (s == checks.Blocker || s == checks.Warning) {
		return fmt.Sprintf("%d %ss", n, s)
	}
	return fmt.Sprintf("%d %s", n, s)
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
