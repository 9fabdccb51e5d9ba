package offline

import "fmt"

// place is where an object stands, for messages.
type place struct {
	file string
	// document counts the YAML documents or the JSON values of the file, item the
	// items of a list in it; both from 1, 0 if there is none.
	document, item int
	// line is 0 where it is not known.
	line int
}

func (p place) String() string {
	out := p.file
	if p.document > 0 {
		out += fmt.Sprintf(", document %d", p.document)
	}
	if p.item > 0 {
		out += fmt.Sprintf(", item %d", p.item)
	}
	if p.line > 0 {
		out += fmt.Sprintf(", line %d", p.line)
	}
	return out
}

// fail puts the place before what is wrong there.
func (p place) fail(format string, args ...any) error {
	return fmt.Errorf("%s: %w", p, fmt.Errorf(format, args...))
}
