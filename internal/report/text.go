package report

import (
	"fmt"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Clean makes text from a cluster safe to print. Names, messages and annotations
// are written by others: an escape sequence or a right-to-left override in one must
// not move the cursor or change what a reviewer sees.
func Clean(s string) string {
	if !strings.ContainsFunc(s, unsafeRune) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unsafeRune(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar
}

// leastText is how many columns a text has at least, however far in it stands.
const leastText = 20

// wrap breaks text at spaces into lines of at most width columns; a word that is
// longer than that is cut, as patches and URLs have no spaces.
func wrap(text string, width int) []string {
	width = max(width, leastText)
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for {
			switch {
			case line == "" && lipgloss.Width(word) <= width:
				line = word
			case line != "" && lipgloss.Width(line)+1+lipgloss.Width(word) <= width:
				line += " " + word
			case line != "":
				lines, line = append(lines, line), ""
				continue
			default:
				head, rest := cut(word, width)
				lines, word = append(lines, head), rest
				continue
			}
			break
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// hang writes text behind a lead, and its further lines below its beginning. Where a
// word of it would be broken for the lead alone, it begins below the lead, further to
// the left: people copy names.
func hang(lead, text string, width int, style lipgloss.Style) []string {
	column := lipgloss.Width(lead)
	var out []string
	bare := ansi.Strip(lead)
	below := len(bare) - len(strings.TrimLeft(bare, " ")) + 2
	if longest := longestWord(text); longest > max(width-column, leastText) && longest <= width-below && below < column {
		out, column = append(out, strings.TrimRight(lead, " ")), below
		lead = strings.Repeat(" ", column)
	}
	for i, l := range wrap(text, width-column) {
		if i > 0 {
			lead = strings.Repeat(" ", column)
		}
		out = append(out, lead+style.Render(l))
	}
	return out
}

func longestWord(text string) int {
	longest := 0
	for _, word := range strings.Fields(text) {
		longest = max(longest, lipgloss.Width(word))
	}
	return longest
}

// cut splits word after as many runes as fit into width columns, at least one.
func cut(word string, width int) (head, rest string) {
	columns := 0
	for i, r := range word {
		columns += lipgloss.Width(string(r))
		if columns > width && i > 0 {
			return word[:i], word[i:]
		}
	}
	return word, ""
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// capital begins a word that is ours with a capital letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
