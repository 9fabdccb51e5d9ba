package config

import (
	"fmt"
	"strings"
)

// Error says what is wrong with an intent file, and where. Line and Column count
// from 1; both are 0 if the whole file is meant.
type Error struct {
	File         string
	Line, Column int
	// Field is the path of the field ("pools[0].batches"), empty for the document.
	Field  string
	Reason string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}
