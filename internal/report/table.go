package report

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
)

// table lays rows out in columns. The last column is wrapped so that a line stays
// within width; the others are never cut, because people copy names from them.
type table struct {
	header []string
	rows   [][]string
	indent string
	width  int
	// stack writes each cell on a line of its own, below the one before, if the names
	// leave no room for the last column.
	stack bool
}

// leastRoom is how many columns the last column has at least.
const leastRoom = 24

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer, head lipgloss.Style) error {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	last := len(widths) - 1
	left := lipgloss.Width(t.indent)
	for _, c := range widths[:last] {
		left += c + 2
	}
	if t.stack && t.width-left < leastRoom {
		return t.printStacked(w, head)
	}
	room := max(t.width-left, leastRoom)

	if err := t.line(w, t.header, widths, head); err != nil {
		return err
	}
	for _, row := range t.rows {
		lines := wrap(row[last], room)
		if len(lines) == 0 {
			lines = []string{""}
		}
		first := append(append([]string{}, row[:last]...), lines[0])
		if err := t.line(w, first, widths, lipgloss.NewStyle()); err != nil {
			return err
		}
		for _, more := range lines[1:] {
			if _, err := fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", left), more); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *table) line(w io.Writer, cells []string, widths []int, style lipgloss.Style) error {
	var b strings.Builder
	b.WriteString(t.indent)
	for i, cell := range cells {
		if i == len(cells)-1 {
			b.WriteString(style.Render(cell))
			break
		}
		b.WriteString(style.Render(cell))
		b.WriteString(strings.Repeat(" ", widths[i]-lipgloss.Width(cell)+2))
	}
	_, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	return err
}

func (t *table) printStacked(w io.Writer, head lipgloss.Style) error {
	style := head
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			indent := t.indent + strings.Repeat("  ", i)
			for _, l := range wrap(cell, t.width-len(indent)) {
				if _, err := fmt.Fprintln(w, indent+style.Render(l)); err != nil {
					return err
				}
			}
		}
		style = lipgloss.NewStyle()
	}
	return nil
}
