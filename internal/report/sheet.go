package report

import "io"

// Width is the number of columns that reports are laid out for where there is no
// terminal, and that prose has at most on one: longer lines are hard to read.
const Width = 100

// LeastWidth is the number of columns below which nothing is laid out: a narrower
// terminal wraps what it gets.
const LeastWidth = 40

// Sheet is what a report for people is written on.
type Sheet struct {
	io.Writer
	// Columns is the width of the terminal behind it; 0 if there is none.
	Columns int
}

// prose is how many columns sentences have.
func (s Sheet) prose() int {
	if s.Columns == 0 {
		return Width
	}
	return min(max(s.Columns, LeastWidth), Width)
}

// tables is how many columns a table may have. Wide ones are made for large terminals,
// and for programs that do not mind.
func (s Sheet) tables(wide bool) int {
	switch {
	case s.Columns > 0:
		return max(s.Columns, LeastWidth)
	case wide:
		return 2 * Width
	default:
		return Width
	}
}
