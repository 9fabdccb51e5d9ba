package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/status"
)

// VerificationLines writes one line for each node that was not there before, for each
// look whose result or evidence is not as it was, for each finding that comes or goes,
// and for the pool's result if that is another. before is nil at first.
func VerificationLines(w io.Writer, before, now *status.Verification, at time.Time) error {
	then := map[string]string{}
	if before != nil {
		for _, l := range verifiedLines(before) {
			then[l.about] = l.text
		}
	}
	write := func(about, text string) error {
		_, err := fmt.Fprintf(w, "%s  %s  %s\n", at.Format("15:04:05"), Clean(about), Clean(text))
		return err
	}
	known := map[string]bool{}
	if before != nil {
		for _, n := range before.Nodes {
			known[n.Name] = true
		}
	}
	for i := range now.Nodes {
		if n := &now.Nodes[i]; !known[n.Name] {
			if err := write("node/"+n.Name, resultWord(n.Result())); err != nil {
				return err
			}
		}
	}
	seen := map[string]bool{}
	for _, l := range verifiedLines(now) {
		seen[l.about] = true
		old, known := then[l.about]
		if known && old == l.text || !known && l.fine {
			continue
		}
		if err := write(l.about, l.text); err != nil {
			return err
		}
	}
	if before != nil {
		gone := map[string]bool{}
		for _, l := range verifiedLines(before) {
			if !seen[l.about] && !gone[l.object] {
				gone[l.object] = true
				if err := write(l.object, "is not looked at any more: it is gone, or has no devices"); err != nil {
					return err
				}
			}
		}
	}
	if err := findingLines(write, before, now); err != nil {
		return err
	}
	if result := poolResult(now); before == nil || poolResult(before) != result {
		return write("pool/"+now.Pool, result)
	}
	return nil
}

// findingLines writes a line for each finding that was not there before, or says
// something else now, and for each that is not there any more.
func findingLines(write func(about, text string) error, before, now *status.Verification) error {
	var old []findingLine
	if before != nil {
		old = linesOf(before.Findings)
	}
	list := linesOf(now.Findings)
	for _, l := range list {
		if slices.Contains(old, l) {
			continue
		}
		if err := write(l.about, l.text); err != nil {
			return err
		}
	}
	told := map[string]bool{}
	for _, l := range old {
		if told[l.about] || slices.ContainsFunc(list, func(n findingLine) bool { return n.about == l.about }) {
			continue
		}
		told[l.about] = true
		if err := write(l.about, "is not found any more"); err != nil {
			return err
		}
	}
	return nil
}

// findingLine is one finding: about which object by which check, and what.
type findingLine struct{ about, text string }

func linesOf(list []checks.Finding) []findingLine {
	out := make([]findingLine, len(list))
	for i, f := range list {
		out[i] = findingLine{f.Object + "  " + f.Code, strings.ToUpper(string(standing(f))) + ": " + message(f)}
	}
	return out
}

// poolResult is what a verification came to.
func poolResult(v *status.Verification) string {
	result := resultWord(v.Result)
	if v.Result == status.OK && checks.Stops(v.Findings) {
		result += ", but for what the findings say"
	}
	return result
}

// verifiedLine is one look. fine is one that need not be told at first.
type verifiedLine struct {
	object, about, text string
	fine                bool
}

func verifiedLines(v *status.Verification) []verifiedLine {
	var out []verifiedLine
	add := func(object string, looks []status.Look) {
		for _, l := range looks {
			text := resultWord(l.Result)
			if l.Detail != "" {
				text += ": " + l.Detail
			}
			out = append(out, verifiedLine{object, object + "  " + l.What, text, l.Result == status.OK})
		}
	}
	add("class of "+v.Resource, v.Class)
	for _, n := range v.Nodes {
		add("node/"+n.Name, n.Looks)
	}
	return out
}
