package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dramigrate/dramigrate/internal/words"
)

// MarkdownBudget is how many characters the Markdown of a plan has at most. GitHub
// refuses a comment of more than 65,536; what is left is for those who put a few
// lines of their own around it.
const MarkdownBudget = 60_000

// mdSection is a part of the document that can be cut between its items.
type mdSection struct {
	// one and many name an item, for the line that says what was left out.
	one, many   string
	open, close string
	items       []string
	// share is how much of the budget the section has before others take the rest.
	share int
}

// pack joins the sections and keeps within budget, measured in runes. Each section
// first takes items from its front up to its share, then the sections in their order
// take what is left; a section without an item is left out whole. left says how many
// items of what did not fit.
func pack(sections []mdSection, budget int) (text string, left []string) {
	kept := make([]int, len(sections))
	spent := 0
	for i := range sections {
		spent += sections[i].take(&kept[i], min(sections[i].share, budget-spent))
	}
	for i := range sections {
		spent += sections[i].take(&kept[i], budget-spent)
	}
	var b strings.Builder
	for i, s := range sections {
		if n := len(s.items) - kept[i]; n > 0 {
			left = append(left, fmt.Sprintf("%d of %s", n, words.Plural(len(s.items), s.one, s.many)))
		}
		if kept[i] == 0 {
			continue
		}
		b.WriteString(s.open)
		for _, item := range s.items[:kept[i]] {
			b.WriteString(item)
		}
		b.WriteString(s.close)
	}
	return b.String(), left
}

// take adds items to the first kept ones while they fit into room, and returns what
// they need, the section's frame included when it is opened.
func (s mdSection) take(kept *int, room int) int {
	spent := 0
	for *kept < len(s.items) {
		need := runes(s.items[*kept])
		if *kept == 0 {
			need += runes(s.open) + runes(s.close)
		}
		if spent+need > room {
			break
		}
		spent += need
		*kept++
	}
	return spent
}

func runes(s string) int { return utf8.RuneCountInString(s) }

// shorten cuts text to at most n runes and says that it did.
func shorten(text string, n int) string {
	if runes(text) <= n {
		return text
	}
	i := 0
	for at := range text {
		if i == n {
			return text[:at] + fmt.Sprintf(" … (%d characters more)", runes(text)-n)
		}
		i++
	}
	return text
}
