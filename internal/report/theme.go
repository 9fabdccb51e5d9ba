package report

import "charm.land/lipgloss/v2"

// theme is how kinds of text look. The sixteen ANSI colours follow the reader's own
// terminal settings, light or dark.
type theme struct {
	title, dim, good, warn, bad lipgloss.Style
	// The lines of a diff.
	hunk, added, removed lipgloss.Style
}

func newTheme() theme {
	s := lipgloss.NewStyle()
	return theme{
		title: s.Bold(true),
		dim:   s.Faint(true),
		good:  s.Foreground(lipgloss.Green),
		warn:  s.Foreground(lipgloss.Yellow),
		bad:   s.Foreground(lipgloss.Red).Bold(true),

		hunk:    s.Foreground(lipgloss.Cyan),
		added:   s.Foreground(lipgloss.Green),
		removed: s.Foreground(lipgloss.Red),
	}
}
