package report

import (
	"html"
	"strings"
	"unicode"
)

// mdText is text from a cluster or a file as prose of GitHub's and GitLab's Markdown:
// no markup, no HTML, no mention of people or issues can come out of it.
func mdText(s string) string {
	runes := []rune(Clean(s))
	at := func(i int) rune {
		if i < 0 || i >= len(runes) {
			return ' '
		}
		return runes[i]
	}
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	var b strings.Builder
	for i, r := range runes {
		switch r {
		case '<', '>', '&':
			b.WriteString(html.EscapeString(string(r)))
		case '\\', '`', '*', '[', ']', '|', '~', '$':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '_':
			// Between letters it is no markup, and names with it stay readable.
			if !word(at(i-1)) || !word(at(i+1)) {
				b.WriteByte('\\')
			}
			b.WriteByte('_')
		case '@', '#', '!':
			b.WriteRune(r)
			if !word(at(i-1)) && word(at(i+1)) {
				// Mentions are looked for in the rendered text, where a backslash or
				// an entity is gone; a comment keeps the two apart.
				b.WriteString("<!-- -->")
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// mdCode is text as code in a line; in a table as well, where a | would end the cell.
func mdCode(s string) string {
	s = Clean(s)
	if strings.TrimSpace(s) == "" {
		return "-"
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// mdCell is mdCode for a cell of a table.
func mdCell(s string) string { return strings.ReplaceAll(mdCode(s), "|", `\|`) }

// mdBlock is a block of code; indent is that of the list item it belongs to.
func mdBlock(indent, language, text string) string {
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	var b strings.Builder
	b.WriteString(indent + fence + language + "\n")
	for l := range strings.Lines(text) {
		b.WriteString(indent + Clean(strings.TrimRight(l, "\r\n")) + "\n")
	}
	b.WriteString(indent + fence + "\n")
	return b.String()
}

func longestRun(s string, of rune) int {
	longest, run := 0, 0
	for _, r := range s {
		if r != of {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
