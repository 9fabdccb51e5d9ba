package report

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
)

// table lays rows out in columns, and in fewer where they do not fit into width. Names
// are never cut, because people copy them, and only a name that is longer than a whole
// line is broken.
type table struct {
	header []string
	rows   [][]string
	indent string
	width  int
	// whole keeps the cells before the last one on one line, however long it gets:
	// programs take lines apart.
	whole bool
}

// leastRoom is how many columns a text needs to be read beside others.
const leastRoom = 40

// gap is what stands between two columns.
const gap = 2

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table in the first of these layouts that fits: all cells beside each
// other; the last one below the others; the first one above the others as well; each
// cell on a line of its own.
func (t *table) print(w io.Writer, head lipgloss.Style) error {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	n := len(widths)
	last := n - 1
	room := t.width - lipgloss.Width(t.indent)
	p := &tablePrinter{table: t, w: w, head: head, widths: widths}
	switch {
	case span(widths[:last])+gap+min(widths[last], leastRoom) <= room:
		return p.bands([]band{{0, n, 0}})
	case t.whole, span(widths[:last]) <= room:
		return p.bands([]band{{0, last, 0}, {last, n, 4}})
	case n <= 3 || 2+span(widths[1:last]) <= room:
		return p.bands([]band{{0, 1, 0}, {1, last, 2}, {last, n, 4}})
	default:
		return p.records()
	}
}

// span is the width of columns beside each other.
func span(widths []int) int {
	sum := -gap
	for _, c := range widths {
		sum += c + gap
	}
	return max(sum, 0)
}

// band is a range of columns that stand on one line.
type band struct{ from, to, indent int }

type tablePrinter struct {
	*table
	w      io.Writer
	head   lipgloss.Style
	widths []int
}

// bands writes each row on as many lines as there are bands, and the header likewise.
func (p *tablePrinter) bands(list []band) error {
	style := p.head
	for _, row := range append([][]string{p.header}, p.rows...) {
		for _, b := range list {
			if err := p.band(b, row, style); err != nil {
				return err
			}
		}
		style = lipgloss.NewStyle()
	}
	return nil
}

// band writes a row's cells of a band. The row's last cell is wrapped below itself, and
// so is one that has the line for itself.
func (p *tablePrinter) band(b band, row []string, style lipgloss.Style) error {
	cells, widths := row[b.from:b.to], p.widths[b.from:b.to]
	if strings.Join(cells, "") == "" {
		return nil
	}
	end := len(cells) - 1
	indent := p.indent + strings.Repeat(" ", b.indent)
	left := lipgloss.Width(indent)
	if end > 0 {
		left += span(widths[:end]) + gap
	}
	lines := []string{cells[end]}
	if b.to == len(row) || end == 0 && !p.whole {
		lines = wrap(cells[end], p.width-left)
	}
	var first strings.Builder
	first.WriteString(indent)
	for i, cell := range cells[:end] {
		first.WriteString(style.Render(cell) + strings.Repeat(" ", widths[i]-lipgloss.Width(cell)+gap))
	}
	if len(lines) > 0 {
		first.WriteString(style.Render(lines[0]))
		lines = lines[1:]
	}
	if _, err := fmt.Fprintln(p.w, strings.TrimRight(first.String(), " ")); err != nil {
		return err
	}
	for _, more := range lines {
		if _, err := fmt.Fprintln(p.w, strings.Repeat(" ", left)+style.Render(more)); err != nil {
			return err
		}
	}
	return nil
}

// records writes each row as its name and then a line for each cell, behind its header.
func (p *tablePrinter) records() error {
	label := 0
	for _, h := range p.header[1:] {
		label = max(label, lipgloss.Width(h))
	}
	for _, row := range p.rows {
		for _, l := range wrap(row[0], p.width-lipgloss.Width(p.indent)) {
			if _, err := fmt.Fprintln(p.w, p.indent+p.head.Render(l)); err != nil {
				return err
			}
		}
		for i, cell := range row[1:] {
			if cell == "" {
				continue
			}
			lead := fmt.Sprintf("%s  %-*s  ", p.indent, label, p.header[i+1])
			for _, l := range hang(lead, cell, p.width, lipgloss.NewStyle()) {
				if _, err := fmt.Fprintln(p.w, l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
