package report

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// leastText is how many columns a text has at least, however far in it stands.
const leastText = 20

// wrap breaks text at spaces into lines of at most width columns; a word that is
// longer than that is cut, as patches and URLs have no spaces. A command, which stands
// between backticks, is there to be copied: it stays on one line if it fits into one, and
// is carried on as a shell wants it if it does not.
func wrap(text string, width int) []string {
	width = max(width, leastText)
	var lines []string
	line := ""
	for _, word := range split(text, '`') {
		for {
			switch {
			case line == "" && lipgloss.Width(word) <= width:
				line = word
			case line != "" && lipgloss.Width(line)+1+lipgloss.Width(word) <= width:
				line += " " + word
			case line != "":
				lines, line = append(lines, line), ""
				continue
			case strings.Count(word, "`") == 2:
				pieces := carryOn(word, width)
				last := len(pieces) - 1
				lines, line = append(lines, pieces[:last]...), pieces[last]
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

// carryOn breaks a command at the spaces between its words, each line but the last with
// a backslash. A quoted word stays whole however long it is: broken it would be another,
// and a line of its own would not help it.
func carryOn(command string, width int) []string {
	const more = ` \`
	var lines []string
	line := ""
	for _, word := range split(command, '\'', '"') {
		switch {
		case line == "":
			line = word
		case lipgloss.Width(line)+1+lipgloss.Width(word) <= width-len(more), lipgloss.Width(word) > width:
			line += " " + word
		default:
			lines, line = append(lines, line+more), word
		}
	}
	return append(lines, line)
}

// split breaks text at white space, but not within a pair of one of the quotes.
func split(text string, quotes ...rune) []string {
	var words []string
	var word strings.Builder
	var open rune // the quote that is open; 0 outside
	for i, r := range text {
		switch {
		case open == 0 && slices.Contains(quotes, r) && strings.ContainsRune(text[i+utf8.RuneLen(r):], r):
			open = r
		case r == open:
			open = 0
		case unicode.IsSpace(r) && open == 0:
			if word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			continue
		}
		word.WriteRune(r)
	}
	if word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
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
	for _, word := range split(text, '`') {
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
