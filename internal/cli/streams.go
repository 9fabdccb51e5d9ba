package cli

import (
	"context"
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Streams are the three standard streams and what is behind them. Tests put buffers
// there.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Env is the environment, "KEY=value" each.
	Env []string
	// InTTY, OutTTY and ErrTTY say whether a person sits at the other end.
	InTTY, OutTTY, ErrTTY bool
	// Width is the terminal's number of columns now; nil or 0 if there is none.
	Width func() int
}

// columns is how many columns a report on a stream is laid out for; 0 if there is no
// terminal behind it, as tty tells. COLUMNS overrides both: it is how a person says what
// a pager or a recording will show.
func (s Streams) columns(tty bool) int {
	switch n := s.columnsVariable(); {
	case n > 0:
		return n
	case tty && s.Width != nil:
		return s.Width()
	default:
		return 0
	}
}

// region is how many columns there are for what is drawn in place. It counts on how the
// terminal wraps, so that COLUMNS only makes it narrower.
func (s Streams) region() int {
	width := s.Width()
	if n := s.columnsVariable(); n > 0 {
		return min(n, width)
	}
	return width
}

// columnsVariable is the variable COLUMNS; 0 if it is not set or no number.
func (s Streams) columnsVariable() int {
	text, _ := s.env("COLUMNS")
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// OSStreams are the process's own.
func OSStreams() Streams {
	tty := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ(),
		InTTY: tty(os.Stdin), OutTTY: tty(os.Stdout), ErrTTY: tty(os.Stderr),
		Width: func() int {
			for _, f := range []*os.File{os.Stdout, os.Stderr} {
				if w, _, err := term.GetSize(int(f.Fd())); err == nil {
					return w
				}
			}
			return 0
		},
	}
}

// interruptible calls read, and leaves it alone when the context ends: nothing else ends
// a read of a terminal or of a pipe that nobody writes to.
func interruptible[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	case r := <-done:
		return r.value, r.err
	}
}

// env is the value of a variable and whether it is set and not empty.
func (s Streams) env(name string) (string, bool) {
	for _, kv := range s.Env {
		if len(kv) > len(name) && kv[:len(name)] == name && kv[len(name)] == '=' {
			return kv[len(name)+1:], kv[len(name)+1:] != ""
		}
	}
	return "", false
}
