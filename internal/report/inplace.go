package report

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// inPlace is a region of a terminal that is drawn over and over.
type inPlace struct {
	w     io.Writer
	drawn int // lines of the region that stand on the terminal
}

// draw replaces the region in one write, so that it does not flicker. above scrolls
// away above it.
func (p *inPlace) draw(above string, lines []string, columns int) error {
	if columns <= 0 {
		columns = Width
	}
	var b strings.Builder
	b.WriteString(p.erased())
	b.WriteString(above)
	for _, line := range lines {
		// A line that the terminal would wrap would break the count of lines.
		b.WriteString(ansi.Truncate(line, columns-1, "…"))
		b.WriteByte('\n')
	}
	p.drawn = len(lines)
	_, err := io.WriteString(p.w, b.String())
	return err
}

// erase takes the region away.
func (p *inPlace) erase() error {
	_, err := io.WriteString(p.w, p.erased())
	p.drawn = 0
	return err
}

// erased moves to the region's first line and clears to the end of the screen.
func (p *inPlace) erased() string {
	if p.drawn == 0 {
		return ""
	}
	return ansi.CursorUp(p.drawn) + "\r" + ansi.EraseScreenBelow
}

// Screen shows one text on a terminal, and the next in its place.
type Screen struct {
	place inPlace
	width func() int
	last  string
}

// NewScreen draws on w. width is the terminal's number of columns now.
func NewScreen(w io.Writer, width func() int) *Screen {
	return &Screen{place: inPlace{w: w}, width: width}
}

// Show replaces what is there, unless it is the same.
func (s *Screen) Show(text string) error {
	if text == s.last {
		return nil
	}
	s.last = text
	columns := s.width()
	if columns > 1 {
		// What was not laid out for so few columns is broken, and not cut.
		text = ansi.Hardwrap(text, columns-1, true)
	}
	return s.place.draw("", strings.Split(strings.TrimSuffix(text, "\n"), "\n"), columns)
}
