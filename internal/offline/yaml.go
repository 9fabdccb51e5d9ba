package offline

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// splitter cuts a stream into YAML documents, of which each may have a limited size.
type splitter struct {
	in   *bufio.Reader
	line int // lines read so far
	// next stood behind the last separator, on its line.
	rest []byte
	// ended says that nothing stood behind the last "...".
	ended bool
}

// next is a document that holds more than comments, without its separator, and the
// number of the line before it. At the end of the stream it is io.EOF.
func (s *splitter) next() (doc []byte, before int, err error) {
	doc, s.rest = s.rest, nil
	content := len(doc) > 0
	before = s.line
	if content {
		before--
	}
	for fresh := true; ; { // fresh: at the beginning of a line
		part, err := s.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, before, err
		}
		if fresh && len(part) > 0 {
			s.line++
			rest, marker := cutMarker(part)
			switch trimmed := bytes.TrimSpace(part); {
			case marker != "":
				s.ended = marker == "..."
				s.rest = bytes.Clone(rest)
				if content {
					return doc, before, nil
				}
				doc, s.rest = s.rest, nil
				content = len(doc) > 0
				before = s.line
				if content {
					before--
				}
				fresh = err == nil
				continue
			case len(trimmed) > 0 && trimmed[0] != '#' && (content || trimmed[0] != '%'):
				content, s.ended = true, false
			}
		}
		if !content { // comments and directives before a document
			part, before = part[:0], s.line
		}
		fresh = err == nil
		if len(doc)+len(part) > maxDocument {
			return nil, before, errTooLarge
		}
		doc = append(doc, part...)
		if errors.Is(err, io.EOF) {
			if !content {
				return nil, before, io.EOF
			}
			return doc, before, nil
		}
	}
}

// cutMarker takes "---" or "..." off the beginning of a line. rest is empty if
// nothing but a comment follows.
func cutMarker(line []byte) (rest []byte, marker string) {
	for _, m := range []string{"---", "..."} {
		after, ok := bytes.CutPrefix(line, []byte(m))
		if !ok || len(after) > 0 && !bytes.ContainsAny(after[:1], " \t\r\n") {
			continue
		}
		trimmed := bytes.TrimSpace(after)
		if len(trimmed) == 0 || trimmed[0] == '#' || m == "..." {
			return nil, m
		}
		return after, m
	}
	return nil, ""
}

func (c *collector) yaml(ctx context.Context, file string, in io.Reader) error {
	s := &splitter{in: bufio.NewReaderSize(in, 64<<10)}
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		doc, before, err := s.next()
		at := place{file: file, document: n, line: before + 1}
		switch {
		case errors.Is(err, io.EOF):
			c.close(file, s.ended)
			return nil
		case errors.Is(err, errTooLarge):
			return at.fail("has more than %d MiB, and YAML has to be held whole: collect it by `kubectl get -o json`, which is read piece by piece", maxDocument>>20)
		case err != nil:
			return at.fail("%w", err)
		}
		if err := c.document(doc, at); err != nil {
			return err
		}
	}
}

// document takes one document, unless it holds nothing but comments.
func (c *collector) document(doc []byte, at place) error {
	if bad := invalidUTF8(doc); bad >= 0 {
		at.line += bytes.Count(doc[:bad], []byte("\n"))
		return at.fail("is not UTF-8")
	}
	var root yaml.Node
	if err := yaml.Unmarshal(doc, &root); err != nil {
		return notYAML(err, at)
	}
	if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return nil
	}
	top := root.Content[0]
	first := at.line - 1
	if top.Kind != yaml.MappingNode {
		return at.fail("is not an object with apiVersion and kind")
	}
	convert := func(n *yaml.Node) ([]byte, error) {
		var out bytes.Buffer
		if err := writeJSON(&out, n, 0); err != nil {
			var wrong *nodeError
			if errors.As(err, &wrong) {
				at.line = first + wrong.line
			}
			return nil, at.fail("%w", err)
		}
		return out.Bytes(), nil
	}
	items := takeItems(top)
	whole, err := convert(top)
	if err != nil {
		return err
	}
	if items == nil {
		return c.object(whole, at)
	}
	var h head
	if err := decode(whole, &h); err != nil {
		return at.fail("%w", err)
	}
	l := &list{kind: h.Kind, version: h.APIVersion}
	if items.Kind != yaml.SequenceNode && items.Tag != "!!null" {
		return at.fail("its items are no list")
	}
	for i, n := range items.Content {
		at.item, at.line = i+1, first+n.Line
		raw, err := convert(n)
		if err != nil {
			return err
		}
		if err := c.item(l, raw, at); err != nil {
			return err
		}
	}
	at.item, at.line = 0, first+1
	return c.endList(l, whole, at)
}

// takeItems removes the items from a list, so that they can be taken one by one.
func takeItems(top *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value == "items" {
			items := top.Content[i+1]
			top.Content = append(top.Content[:i:i], top.Content[i+2:]...)
			return items
		}
	}
	return nil
}

func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size < 2 {
			return at
		}
		at += size
	}
}

// yamlLine is where the parser says the number of a line.
var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// notYAML says what is wrong with the YAML itself, with the line of the file instead
// of that of the document.
func notYAML(err error, at place) error {
	text := err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			at.line += n - 1
			text = text[len(m[0]):]
		}
	}
	return at.fail("is not YAML: %s; was the file cut off, or is a line `---` missing between two documents?", text)
}

// nodeError is what is wrong with one node of a document.
type nodeError struct {
	line int // of the document, from 1
	text string
}

func (e *nodeError) Error() string { return e.text }

func wrongNode(n *yaml.Node, format string, args ...any) error {
	return &nodeError{n.Line, fmt.Sprintf(format, args...)}
}
