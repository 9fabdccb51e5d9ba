package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// errTooLarge ends the reading of a value that is longer than it may be.
var errTooLarge = errors.New("too large")

// meter lets through what one value may have, so that no value can fill the memory.
type meter struct {
	ctx         context.Context
	in          io.Reader
	read, until int64
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, context.Cause(m.ctx)
	}
	if m.read >= m.until {
		return 0, errTooLarge
	}
	n, err := m.in.Read(p[:min(int64(len(p)), m.until-m.read)])
	m.read += int64(n)
	return n, err
}

// jsonReader reads a stream of JSON values. A list is never held whole: its items are
// taken one by one, so that the answer to a `kubectl get` may have any size.
type jsonReader struct {
	c    *collector
	dec  *json.Decoder
	m    *meter
	file string
}

func (c *collector) json(ctx context.Context, file string, in io.Reader) error {
	m := &meter{ctx: ctx, in: in}
	r := &jsonReader{c: c, dec: json.NewDecoder(m), m: m, file: file}
	for n := 1; ; n++ {
		r.allow()
		at := place{file: file, document: n}
		token, err := r.dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && token != json.Delim('{') {
			err = fmt.Errorf("is a %T, not an object", token)
		}
		if err != nil {
			return r.fail(at, err)
		}
		if err := r.value(at); err != nil {
			return err
		}
	}
}

// allow lets one more value in.
func (r *jsonReader) allow() { r.m.until = r.dec.InputOffset() + maxObject }

// value reads an object whose brace has been read.
func (r *jsonReader) value(at place) error {
	fields := map[string]json.RawMessage{}
	var l *list
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return r.fail(at, err)
		}
		key, _ := token.(string) // a key is a string
		_, twice := fields[key]
		if twice || key == "items" && l != nil {
			return at.fail("has the key %q twice", key)
		}
		if key == "items" {
			if l, err = r.items(at, fields); err != nil {
				return err
			}
			continue
		}
		var raw json.RawMessage
		if err := r.dec.Decode(&raw); err != nil {
			return r.fail(at, err)
		}
		fields[key] = raw
	}
	if _, err := r.dec.Token(); err != nil {
		return r.fail(at, err)
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		return r.fail(at, err)
	}
	if !utf8.Valid(whole) {
		return at.fail("is not UTF-8")
	}
	if l != nil {
		return r.c.endList(l, whole, at)
	}
	return r.c.object(whole, at)
}

// items reads the items of a list. What is known of the list by now are the keys that
// stand before its items.
func (r *jsonReader) items(at place, before map[string]json.RawMessage) (*list, error) {
	token, err := r.dec.Token()
	if err != nil {
		return nil, r.fail(at, err)
	}
	l := &list{}
	if token == nil { // Go writes an empty list so
		return l, nil
	}
	if token != json.Delim('[') {
		return nil, at.fail("its items are no array")
	}
	// What is not a string is found when the list's end is read.
	_ = json.Unmarshal(before["kind"], &l.kind)
	_ = json.Unmarshal(before["apiVersion"], &l.version)
	for r.dec.More() {
		r.allow()
		at.item++
		var raw json.RawMessage
		if err := r.dec.Decode(&raw); err != nil {
			return nil, r.fail(at, err)
		}
		if !utf8.Valid(raw) {
			return nil, at.fail("is not UTF-8")
		}
		if err := r.c.item(l, raw, at); err != nil {
			return nil, err
		}
	}
	if _, err := r.dec.Token(); err != nil {
		return nil, r.fail(at, err)
	}
	r.allow()
	return l, nil
}

// fail says what is wrong with the JSON itself.
func (r *jsonReader) fail(at place, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, errTooLarge):
		return at.fail("is larger than %d MiB, which no object of Kubernetes is", maxObject>>20)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return at.fail("ends in the middle of it, after byte %d: the file was cut off; make it again", r.dec.InputOffset())
	case errors.As(err, &syntax):
		return at.fail("is not JSON, at byte %d: %w", syntax.Offset, err)
	default:
		return at.fail("%w", err)
	}
}
