package offline

import (
	"fmt"
	"strings"
)

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
	return &placed{p, fmt.Errorf(format, args...)}
}

// placed is what is wrong at a place.
type placed struct {
	at  place
	err error
}

// mostText is how many bytes of an error are shown: it quotes what stands in a file,
// and that may be megabytes.
const mostText = 400

func (e *placed) Error() string {
	text := e.err.Error()
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + " ..."
	}
	return e.at.String() + ": " + text
}

func (e *placed) Unwrap() error { return e.err }
